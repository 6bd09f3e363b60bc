"""Servers with a workload against them; the servers are traced as well as their clients."""
import normal
from program import Program

# A free port from the kernel, and a wait until something listens there.
PORT = r"""
free() { python3 -I -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
listening() { for _ in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/$1) 2>/dev/null && return 0; sleep 0.05; done; echo "nothing listens on $1" >&2; return 1; }
appears() { for _ in $(seq 600); do [ -e "$1" ] && return 0; sleep 0.05; done; echo "$1 does not appear" >&2; return 1; }
port=$(env -u LD_PRELOAD bash -c "$(declare -f free); free")
"""
NGINX = r"""
daemon off; master_process on; worker_processes 2; pid nginx.pid; error_log error.log;
events { worker_connections 128; }
http { access_log access.log; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5; gzip on; gzip_min_length 10; gzip_types text/plain; default_type text/plain;
  server { listen 127.0.0.1:PORT; root html; location /back/ { proxy_pass http://127.0.0.1:PORT/; } location /old { return 301 /index.html; } }
  server { listen 127.0.0.1:SECURE ssl; ssl_certificate cert; ssl_certificate_key key; root html; } }
"""
CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -days 3650 2>/dev/null; chmod 644 key"
SSHD = r"""
cat > config <<END
Port $port
ListenAddress 127.0.0.1
HostKey $PWD/host
AuthorizedKeysFile $PWD/authorized
PidFile $PWD/sshd.pid
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
END
"""


def programs():
    return [
        Program("nginx curl", PORT + r"""
secure=$(env -u LD_PRELOAD bash -c "$(declare -f free); free"); sed -i "s/PORT/$port/g; s/SECURE/$secure/" nginx.conf
nginx -p $PWD -c nginx.conf & server=$!; listening $port
for i in $(seq 10); do curl -sS http://127.0.0.1:$port/index.html; done; curl -sS --compressed http://127.0.0.1:$port/big | md5sum; curl -sS http://127.0.0.1:$port/back/big | md5sum; curl -sSL -o /dev/null -w '%{http_code} %{num_redirects}\n' http://127.0.0.1:$port/old
curl -sS -w '%{http_code}\n' -o /dev/null http://127.0.0.1:$port/nothing; curl -sS --cacert cert https://localhost:$secure/index.html; curl -sS --http1.1 http://127.0.0.1:$port/index.html http://127.0.0.1:$port/index.html
curl -sS https://localhost:$secure/ 2>/dev/null || echo $?; ab -q -n 500 -c 8 http://127.0.0.1:$port/big 2>&1 | grep -E 'Complete|Failed|Document Length'; kill -HUP $server; curl -sS http://127.0.0.1:$port/index.html; kill -QUIT $server; wait $server; wc -l < access.log; cat error.log | grep -c alert || true
""", prepare="mkdir html; echo hello > html/index.html; seq 20000 > html/big; " + CERTIFICATE, files={"nginx.conf": "user root;\n" + NGINX}, needs="nginx:nginx-light curl:curl ab:apache2-utils openssl:openssl", traced="nginx curl ab", version="nginx -v 2>&1", timeout=150, runs=2),
        Program("redis", PORT + r"""
redis-server --port $port --save '' --appendonly yes --dir $PWD --io-threads 2 > log & server=$!; listening $port; cli="redis-cli -p $port"
$cli set a 1; $cli incrby a 41; $cli lpush l x y z; $cli lrange l 0 -1; $cli zadd z 1 a 2 b; $cli zrange z 0 -1 withscores; $cli eval 'return redis.call("get", KEYS[1]) + 1' 1 a; $cli script load 'return 1'; $cli hset h f v; $cli --json hgetall h
redis-benchmark -p $port -n 3000 -c 20 -P 4 -t set,get,lpush,zadd --csv | cut -d, -f1; $cli bgsave; for _ in $(seq 200); do [ "$($cli lastsave)" = "$($cli lastsave)" ] && [ -s dump.rdb ] && break; sleep 0.05; done; redis-check-rdb dump.rdb | grep -c 'RDB looks OK'
$cli bgrewriteaof; $cli dbsize; $cli nothing; $cli shutdown nosave; wait $server
""", needs="redis-server:redis-server redis-benchmark:redis-tools", traced="redis-server redis-benchmark redis-cli", version="redis-server --version", timeout=150, runs=2),
        Program("postgresql pgbench", PORT + r"""
chown -R postgres: base; chmod 755 . ; mkdir -p sock; chmod 777 sock;
setpriv --reuid=postgres --regid=postgres --clear-groups postgres -D base -p $port -k $PWD/sock -c listen_addresses=127.0.0.1 -c shared_buffers=32MB > log 2>&1 & server=$!; listening $port; export PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres
psql -qc 'create database b'; pgbench -q -i -s 1 b 2>/dev/null; pgbench -c 4 -j 2 -t 100 b 2>/dev/null | grep -E 'type|actually|failed'; psql -At b < load.sql; pg_dump --schema-only b | grep -v '^--\|restrict' | md5sum; psql -At b -c 'select nothing' 2>&1 || echo $?
kill -TERM $server; wait $server; grep -c 'database system is shut down' log
""", prepare="mkdir base; chown postgres: base; setpriv --reuid=postgres --regid=postgres --clear-groups initdb -D base -A trust -U postgres --no-sync -E UTF8 --locale=C.UTF-8 > /dev/null",
                files={"load.sql": "create table t as select i, md5(i::text) m, i % 13 g from generate_series(1, 30000) i;\ncreate index on t(m);\nanalyze t;\nselect g, count(*), sum(i) from t group by g order by g limit 3;\nselect count(*) from t a join t b on a.i = b.i * 2 where b.g = 4;\n"
                       "create function f(n int) returns int language plpgsql as $$ begin if n < 2 then return n; end if; return f(n - 1) + f(n - 2); end $$;\nselect f(15);\ndo $$ begin perform 1 / 0; exception when division_by_zero then raise notice 'caught'; end $$;\nselect jsonb_agg(g) from (select distinct g from t order by g) s;\nset max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set min_parallel_table_scan_size = 0;\nselect sum(length(m)) from t;\nselect regexp_replace('abc', 'b', 'x'), to_char(date '2024-02-29' + 1, 'YYYY-MM-DD'), 2 ^ 0.5;\n"},
                needs="postgres:postgresql pgbench:postgresql-contrib psql:postgresql-client setpriv:util-linux", traced="postgres pgbench psql", version="postgres --version", timeout=200, runs=2),
        Program("sshd ssh", PORT + SSHD + r"""
$(command -v sshd) -D -e -f config 2> log & server=$!; listening $port; ssh="ssh -F none -i id -p $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -o LogLevel=ERROR root@127.0.0.1"
$ssh 'echo remote; exit 7' || echo $?; seq 50000 | $ssh md5sum; $ssh -tt 'tty | cut -c1-8; echo terminal' < /dev/null | tr -d '\r'; scp -q -F none -i id -P $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=known cert root@127.0.0.1:$PWD/copied; cmp cert copied && echo copied
printf 'get cert got\nls cert\n' | sftp -q -b - -F none -i id -P $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=known root@127.0.0.1:$PWD; cmp cert got; kill $server; wait $server || echo $?; ssh-keyscan -p 1 127.0.0.1 2>&1 || true
""", prepare="mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t rsa -b 2048 -N '' -f id; cp id.pub authorized; seq 3000 > cert", needs="sshd:openssh-server ssh:openssh-client", traced="sshd ssh scp sftp", version="ssh -V 2>&1", timeout=150, runs=2,
                normalise=(normal.without("^#"),)),
        Program("ssh-keygen", "ssh-keygen -q -t ed25519 -N '' -C c -f key && ssh-keygen -y -f key | cmp - key.pub; ssh-keygen -q -t rsa -b 3072 -N secret -f rsa; ssh-keygen -y -P secret -f rsa > /dev/null; ssh-keygen -y -P wrong -f rsa 2>&1 || echo $?; echo text > f; ssh-keygen -q -Y sign -f key -n n f; echo \"a $(cat key.pub)\" > signers; ssh-keygen -Y verify -f signers -I a -n n -s f.sig < f",
                needs="ssh-keygen:openssh-client", version="ssh -V 2>&1", normalise=(normal.replace(r"SHA256:\S+", "SHA256"),)),
        Program("openssl s_server", PORT + r"""
openssl s_server -quiet -accept 127.0.0.1:$port -key key -cert cert -WWW > log 2>&1 & server=$!; listening $port
for v in -tls1_2 -tls1_3; do printf 'GET /page HTTP/1.0\r\n\r\n' | openssl s_client -quiet $v -connect 127.0.0.1:$port -CAfile cert -ign_eof 2>/dev/null | md5sum; done; curl -sS --cacert cert https://localhost:$port/page | md5sum; echo | openssl s_client -connect 127.0.0.1:$port -CAfile cert 2>/dev/null | grep -E '^ *Verification|Cipher is|return code'; kill $server; wait $server || echo $?
""", prepare=CERTIFICATE + "; seq 100000 > page", needs="openssl:openssl curl:curl", traced="openssl curl", version="openssl version", runs=2),
        Program("memcached", PORT + r"""
memcached -u root -l 127.0.0.1 -p $port -t 4 & server=$!; listening $port; $(command -v python3) client.py $port; kill -TERM $server; wait $server || echo $?
""", files={"client.py": "import socket, sys, threading\ndef talk(n):\n    f = socket.create_connection(('127.0.0.1', int(sys.argv[1]))).makefile('rwb')\n    for i in range(300):\n        v = (b'%d' % i) * 50; f.write(b'set k%d-%d 0 0 %d\\r\\n%s\\r\\nget k%d-%d\\r\\n' % (n, i, len(v), v, n, i)); f.flush()\n        assert f.readline() == b'STORED\\r\\n'; f.readline(); assert f.readline().strip() == v; f.readline()\nthreads = [threading.Thread(target=talk, args=(n,)) for n in range(6)]\n[t.start() for t in threads]; [t.join() for t in threads]\nprint('done')\n"},
                needs="memcached:memcached python3:python3", version="memcached -V", runs=2),
        Program("mariadb", PORT + r"""
mariadbd --no-defaults --user=root --datadir=$PWD/base --socket=$PWD/s --port=$port --bind-address=127.0.0.1 --innodb-buffer-pool-size=32M --skip-grant-tables > log 2>&1 & server=$!; appears s; listening $port
mariadb --no-defaults -S s -N test < load.sql; mariadb --no-defaults -S s -e 'select nothing' 2>&1 || echo $?; kill $server; wait $server; grep -c 'Shutdown complete' log
""", prepare="mkdir base; mariadb-install-db --no-defaults --user=root --datadir=$PWD/base --auth-root-authentication-method=normal --skip-test-db > log 2>&1 || { cat log; exit 1; }; mkdir -p base/test",
                files={"load.sql": "create table t(i int primary key, m char(32), key(m)) engine=innodb;\ninsert into t select seq, md5(seq) from seq_1_to_20000;\nselect count(*), sum(i) from t where m like 'a%';\nstart transaction; update t set m = 'x' where i % 3 = 0; rollback;\nselect count(distinct m) from t;\nselect json_extract('{\"a\": [1, 2]}', '$.a[1]'), date_add('2024-02-28', interval 2 day);\n"},
                needs="mariadbd:mariadb-server-core mariadb:mariadb-client-core mariadb-install-db:mariadb-server-core", traced="mariadbd mariadb", version="mariadbd --version", timeout=200, runs=2),
        Program("python http.server", PORT + r"""
/usr/bin/python3 -m http.server --bind 127.0.0.1 $port -d html > log 2>&1 & server=$!; listening $port; for i in 1 2 3 4 5; do curl -sS http://127.0.0.1:$port/page | md5sum; done; wget -q -O - http://127.0.0.1:$port/ | md5sum; kill -TERM $server; wait $server || echo $?
""", prepare="mkdir html; seq 5000 > html/page", needs="/usr/bin/python3:python3 curl:curl wget:wget", traced="python3.11 curl wget", version="/usr/bin/python3 -V", runs=2),
        Program("docker client", "docker --version | cut -d' ' -f1-2; docker -H unix://$PWD/none ps 2>&1 | sed 's/ Is the docker.*//' ; docker context ls --format '{{.Name}}'", needs="docker:docker.io", traced="bash", version="docker --version",
                known="the client is a static Go program: nothing is recorded of it, and nothing changes"),
    ]
