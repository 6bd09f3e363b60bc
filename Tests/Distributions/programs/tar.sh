# packages: tar gzip
# records: tar gzip
# version: tar --version
# quick
set -e
mkdir folder
for n in 1 2 3 4 5; do seq $((n * 1000)) >folder/$n; done
ln -s 1 folder/link
ln folder/2 folder/hard
tar --sort=name --mtime=@0 --owner=0 --group=0 -czvf all.tar.gz folder
gzip -dc all.tar.gz | sha256sum
mkdir out
tar -xzf all.tar.gz -C out
diff -r folder out/folder
tar -tvzf all.tar.gz --utc --numeric-owner | cut -c1-40
tar -xzf nothing_there || echo "status $?"
