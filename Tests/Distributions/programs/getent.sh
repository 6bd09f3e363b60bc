# packages: libc-bin
# records: getent id
# version: getent --version
# quick
getent passwd root nobody
getent group root daemon
getent services http domain/udp
getent protocols tcp
getent hosts localhost
getent ahosts 127.0.0.1
getent passwd nobody_of_this_name || echo "status $?"
id nobody
