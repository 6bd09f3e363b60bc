"""Shells and the small tools that are run a million times a day."""
import normal
from program import Program

BASH = r"""
for i in 1 2 3; do (echo sub $i; (echo deeper $i | tr a-z A-Z)); done
x=$(seq 1 200 | sort -rn | head -3 | paste -sd,); echo "$x"
cat <(echo process substitution) <(seq 3)
declare -A map; for w in a b c a b a; do map[$w]=$((${map[$w]:-0} + 1)); done; for k in a b c; do echo "$k ${map[$k]}"; done
[[ 2026-11-21 =~ ^([0-9]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]}/${BASH_REMATCH[1]}"
f() { local n=$1; ((n > 0)) && f $((n - 1)) || true; return $((n % 256)); }
f 200 || echo "f returned $?"
coproc BC { while read -r line; do echo "got $line"; done; }
echo hello >&"${BC[1]}"; read -r answer <&"${BC[0]}"; echo "$answer"; exec {BC[1]}>&-; wait
trap 'echo "usr1 received"' USR1; kill -USR1 $BASHPID
trap 'echo trapped at exit' EXIT
(exit 7) || echo "subshell $?"
set -o pipefail; false | true || echo "pipefail $?"
sort <<< $'b\na\nc'; echo to stderr >&2
for i in {1..20}; do (exit $i) & pids[i]=$!; done; total=0
for i in {1..20}; do wait ${pids[i]} || total=$((total + $?)); done; echo "total $total"
printf '%s\n' "${!map[@]}" | sort | while IFS= read -r key; do printf '%-5s|%5d\n' "$key" "${map[$key]}"; done
mapfile -t lines < <(seq 1000); echo "${#lines[@]} ${lines[@]:500:3}"
exit 3
"""
COREUTILS = r"""
seq 1 20000 > n; sha256sum n | cut -d' ' -f1; md5sum < n; cksum n; b2sum n; wc n; split -l 3000 n part.; cat part.* | cmp - n
sort -R --random-source=n n | sort -n --parallel=2 -S 1M | uniq -c | tail -2; comm -12 <(head -50 n | sort) <(tail -19960 n | sort)
tac n | head -3; rev n | tail -1; shuf --random-source=n -n 3 n; nl n | tail -1; fold -w 3 n | tail -2; od -A d -t x1z n | tail -3
paste n n | awk 'NR % 5000 == 0'; join <(seq 5 | sed 's/$/ a/') <(seq 3 7 | sed 's/$/ b/'); expand -t 3 <<< $'a\tb'; factor 123456789 1000000007
cp -r . ../copy && mv ../copy ./moved && ls moved | head -3; ln -s n link; readlink link; stat -c '%s %F' n link; du --apparent-size -b n
install -m 640 n installed; stat -c %a installed; touch -d @0 old; date -u -d @1700000000; truncate -s 10K sparse; dd if=n of=dd bs=4k count=3 status=none; cmp -n 12288 n dd
timeout 5 true; env -i A=b env; nice -n 1 true; mktemp -u XXXX | wc -c; base64 n | base64 -d | cmp - n; tr -dc 0-4 < n | wc -c; csplit -s n 100 200; wc -l xx0*
numfmt --to=iec 123456789; expr 3 \* 4; test -f n; printf '%q %5.2f\n' "a b" 3.14159; tee t1 t2 < n | tail -1; id -u; realpath --relative-to=/usr /usr/bin; pr -l 20 n | head -8 | tail -4
ls --full-time nothing_there || echo "ls: $?"; cat nothing_there || echo "cat: $?"
"""


def programs():
    return [
        Program("bash", BASH, status=3, version="bash --version", quick=True),
        Program("dash", "exec dash -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $i | cat; exit 2'", status=2, needs="dash", version="dpkg-query -Wf '${Version}' dash"),
        Program("coreutils", COREUTILS, traced="sort sha256sum", version="sort --version", quick=True),
        Program("find xargs grep", "cp -r /usr/include/linux . ; find linux -name '*.h' | sort | xargs -n 50 grep -c define | sort | md5sum; find linux -type f -printf '%s %p\\n' | sort | md5sum; "
                "grep -rhoE '[A-Z_]{8,}' linux | sort | uniq -c | sort -k1,1rn -k2 | head -5; find . -maxdepth 1 -newer linux | wc -l >/dev/null",
                traced="find xargs grep", version="find --version", needs="linux/types.h:linux-libc-dev"),
        Program("sed awk", "seq 1 30000 | awk '{ s += $1; a[$1 % 97] += s % 1000 } END { for (i = 0; i < 97; i++) print i, a[i] }' | sort -n | sed -E 's/([0-9]+) ([0-9]+)/\\2:\\1/; 1~3d' | md5sum; "
                "awk 'BEGIN { srand(1); for (i = 0; i < 5; i++) print substr(sprintf(\"%.6f\", sin(i) * exp(i)), 1, 6); while ((\"seq 3\" | getline l) > 0) print l; system(\"echo sub\") }'",
                traced="sed", needs="awk sed", version="sed --version", quick=True),
        Program("bc", "echo 'scale=400; 4*a(1); define f(n) { if (n < 2) return 1; return n * f(n - 1) }; f(300); sqrt(2)' | bc -l | md5sum; echo '2 3 ^ p 10 k 2 v p' | dc || echo no dc",
                needs="bc:bc", version="bc --version", normalise=(normal.without("dc"),)),
        Program("jq", "jq -n '[range(20000) | {a: ., b: (. % 7), c: \"x\\(.)\"}]' > big.json; jq -c 'group_by(.b) | map({b: .[0].b, n: length, s: (map(.a) | add)})' big.json; jq '.[] | select(.a % 5000 == 0) | .c' big.json; echo '{' | jq . || echo $?",
                needs="jq:jq", version="jq --version"),
        Program("tar xz zstd gzip", "tar --sort=name --mtime=@0 --owner=0 --group=0 -cf all.tar -C /usr/include linux; for z in gzip 'xz -T2 -1' 'zstd -q -T2 --rm' bzip2; do cp all.tar t.tar; $z t.tar; ls t.tar.* | tee name; "
                "tar -tf $(cat name) | md5sum; mkdir -p x; tar -C x -xf $(cat name); diff -r x/linux /usr/include/linux; rm -rf x t.*; done; sha256sum all.tar",
                traced="tar xz zstd", needs="tar xz:xz-utils zstd:zstd gzip bzip2:bzip2 linux/types.h:linux-libc-dev", version="tar --version"),
        Program("rsync", "cp -r /usr/include/linux a; rsync -a --stats a/ b/ | grep -E 'files transferred|Total file size'; echo more >> a/types.h; touch -d @5 a/types.h; rsync -ai --delete a/ b/; diff -r a b; rsync -rn nothing_there b || echo $?",
                needs="rsync:rsync linux/types.h:linux-libc-dev", version="rsync --version"),
        Program("ripgrep", "cp -r /usr/include/linux .; rg --sort path -c 'struct \\w+_info' linux | md5sum; rg -j2 -N --no-filename -o 'NETLINK_\\w+' linux | sort | uniq -c | md5sum; rg nothing_like_this linux || echo $?",
                traced="rg", needs="rg:ripgrep linux/types.h:linux-libc-dev", version="rg --version"),
        Program("man groff", "groff -man -Tutf8 page.1; groff -ms -Tps -e -t -p paper.ms > paper.ps; grep -c show paper.ps >/dev/null; tail -3 paper.ps | head -1; man --nh --nj -l page.1 | col -b | head -20", traced="groff troff",
                files={"page.1": ".TH PAGE 1\n.SH NAME\npage \\- a page\n.SH DESCRIPTION\nThis is \\fBbold\\fR text that is long enough to be filled and broken into lines.\n.TP\n\\-x\nan option\n" * 40,
                       "paper.ms": ".TL\nPaper\n.LP\nText with an equation:\n.EQ\nx = {-b +- sqrt {b sup 2 - 4ac}} over 2a\n.EN\n.TS\nl r.\na\t1\nb\t2\n.TE\n" * 10},
                needs="groff:groff man:man-db col", version="groff --version"),
        Program("diff patch", "seq 5000 > a; sed '7~90s/$/x/; 11~100d' a > b; diff -u --label a --label b a b > p || true; md5sum p; patch -s a < p; cmp a b; diff3 -m a b a | md5sum; sdiff -s a <(sed 3d b) || echo $?", traced="diff patch",
                needs="diff patch:patch", version="diff --version"),
        Program("procps", "sleep 60 & pid=$!; ps -o comm= -p $pid; pgrep -P $$ sleep | grep -c .; kill $pid; wait $pid || echo $?; free -m | head -1; ls /proc/self/fd | wc -l", traced="ps", needs="ps:procps", version="ps --version"),
        Program("curl file", "seq 5000 > page; curl -s file://$PWD/page | md5sum; curl -sS http://127.0.0.1:9/ || echo $?", traced="curl", normalise=(normal.times,), needs="curl:curl", version="curl --version"),
        Program("sqlite3", "sqlite3 base.db < load.sql | md5sum; sqlite3 base.db '.dump' | md5sum; sqlite3 base.db 'select nothing' || echo $?",
                files={"load.sql": "create table t(a integer primary key, b text, c real); begin; with recursive n(i) as (select 1 union all select i+1 from n where i < 50000) insert into t select i, 'row ' || (i*7919 % 50000), i*1.5 from n; commit;\n"
                       "create index ib on t(b); select count(*), sum(a), avg(c) from t where b like 'row 1%'; explain query plan select * from t where b = 'row 5';\n"
                       "create virtual table f using fts5(x); insert into f select b from t limit 2000; select count(*) from f where f match 'row'; update t set c = c + a where a % 3 = 0; select sum(c) from t; vacuum; pragma integrity_check;\n"},
                needs="sqlite3:sqlite3", version="sqlite3 --version", quick=True),
        Program("strace", "strace -f -o log bash -c 'seq 1 3; (echo x | cat)'; grep -c 'exited with' log", needs="strace:strace", version="strace --version", runs=2),
        Program("file ldd readelf", "file -b /bin/ls | cut -d, -f1-3; readelf -Ws /bin/ls | wc -l; objdump -d /bin/true | tail -n +4 | md5sum; nm -D /bin/ls | md5sum; strings -n 8 /bin/ls | md5sum; ar rcsD a.a /bin/true; ar t a.a; strip -o s /bin/ls; cmp s /bin/ls",
                traced="x86_64-linux-gnu-objdump", needs="file:file objdump:binutils", version="objdump --version"),
        Program("openssl speed", "openssl speed -seconds 1 -bytes 1024 sha256 2>&1; openssl speed -seconds 1 -bytes 1024 -evp aes-256-gcm 2>&1; openssl speed -seconds 1 ecdsap256 2>&1", normalise=(normal.numbers, normal.replace(r"[\d.]+k|N+\w*", "N"), normal.without("^options|^CPUINFO|^compiler")),
                needs="openssl:openssl", version="openssl version", traced="openssl"),
        Program("openssl", "openssl genrsa 2048 2>/dev/null > key; openssl rsa -in key -check -noout; openssl req -x509 -key key -subj /CN=x -days 1 -out cert; openssl verify -CAfile cert cert; openssl enc -aes-256-cbc -pbkdf2 -k x -S 0011223344556677 -in /usr/include/stdio.h | openssl dgst -sha256; "
                "echo data | openssl dgst -sha256 -sign key -out sig; echo data | openssl dgst -sha256 -verify <(openssl rsa -in key -pubout) -signature sig; openssl rsa -in nothing_there 2>/dev/null || echo $?", needs="openssl:openssl", version="openssl version", quick=True),
        Program("git", r"""
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo; cd repo; git config user.email a@b.c; git config user.name n; git config gc.auto 0; git config pack.threads 2
for i in $(seq 8); do seq 1 $((i * 50)) > file$((i % 3)); git add -A; git commit -qm "commit $i"; done
git log --stat --format='%H %s'; git log -p -1 | tail -3; git blame -s file0 | tail -2; git checkout -qb side HEAD~3; echo x > other; git add other
git commit -qm side; sed -i s/7/seven/ file1; git commit -qam conflict; git rebase -q main || { echo conflict; git checkout -q --theirs . ; git add -A; GIT_EDITOR=true git rebase --continue | tail -1; }
git log --oneline --graph | cat; git tag v1; git stash list; git gc -q; git fsck 2>&1; git clone -q . ../copy; git clone -q --depth 1 "file://$PWD" ../shallow; git -C ../copy log --oneline | wc -l; git archive HEAD | sha256sum; git bundle create -q ../b HEAD; git grep -c seven; git bisect start -q HEAD HEAD~4; git bisect run sh -c '! grep -q seven file1' | tail -1
""", needs="git:git", version="git --version", quick=True, traced="git", timeout=120),
    ]
