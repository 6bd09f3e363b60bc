# packages: openssl
# records: openssl
# version: openssl version
# quick
set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=localhost -days 2 2>/dev/null
openssl verify -CAfile cert cert
openssl x509 -in cert -noout -subject
seq 3000 >data
openssl dgst -sha256 -sign key -out signature data
openssl pkey -in key -pubout -out public
openssl dgst -sha256 -verify public -signature signature data
openssl enc -aes-256-cbc -pbkdf2 -k secret -in data -out sealed
openssl enc -d -aes-256-cbc -pbkdf2 -k secret -in sealed | cmp - data
openssl dgst -sha3-256 data
# A handshake and a page over TLS. The server says when it listens, and on which port.
mkfifo said
openssl s_server -accept 127.0.0.1:0 -key key -cert cert -www -naccept 1 >said 2>/dev/null &
exec 8<said
while read -r line <&8; do case $line in ACCEPT*:*) port=${line##*:}; break ;; esac; done
printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -ign_eof -connect "127.0.0.1:$port" -CAfile cert 2>/dev/null >page || true
grep -c 'Ciphers supported' page
wait
openssl rsa -in nothing_there 2>/dev/null || echo "status $?"
