# packages: coreutils
# records: sort
# status: 1
# version: sort --version
# quick
seq 20000 | awk '{ print ($1 * 7919) % 20011, "line", $1 }' >lines
sort -n lines | sha256sum
sort -k3,3nr -S 64K -T . --parallel=2 lines | sha256sum
LC_ALL=C.UTF-8 sort -u -k2,2 lines
sort -R --random-source=lines lines | sha256sum
sort -c lines
