# packages: curl python3 openssl ca-certificates
# records: curl
# version: curl --version
set -e
seq 5000 >page
curl -s "file://$PWD/page" | sha256sum
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -days 2 2>/dev/null
cat >server.py <<'END'
import http.server, ssl, sys, threading

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201), self.end_headers()
        self.wfile.write(body.upper())

servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) for _ in range(2)]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert", "key")
servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True)
for server in servers:
    server.handle_error = lambda *_: None  # a client that does not trust the certificate
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(*(server.server_port for server in servers), flush=True)
sys.stdin.read()
END
mkfifo ports ends
python3 server.py <ends >ports &
exec 9>ends
read -r plain sealed <ports
curl -sS "http://localhost:$plain/page" "http://127.0.0.1:$plain/page" | sha256sum
curl -sS --data "sent to the server" -w '%{http_code}\n' "http://127.0.0.1:$plain/"
curl -sS --cacert cert --resolve "localhost:$sealed:127.0.0.1" "https://localhost:$sealed/page" | sha256sum
curl -s "https://127.0.0.1:$sealed/page" || echo "status $?"
curl -sS -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$plain/nothing"
exec 9>&-
wait
