# packages: openssh-client
# records: ssh-keygen
# version: ssh -V
set -e
ssh-keygen -q -t ed25519 -N '' -C name -f key
ssh-keygen -y -f key | cut -d ' ' -f 1,2 >public
cut -d ' ' -f 1,2 key.pub | cmp - public
ssh-keygen -q -t rsa -b 3072 -N secret -f rsa
ssh-keygen -y -P wrong -f rsa 2>/dev/null || echo "status $?"
ssh-keygen -q -t ecdsa -N '' -f ecdsa
echo text >file
ssh-keygen -q -Y sign -f key -n name file 2>/dev/null
echo "someone $(cat key.pub)" >signers
ssh-keygen -Y verify -f signers -I someone -n name -s file.sig <file | sed 's/SHA256:.*//'
ssh-keygen -q -s ecdsa -I identity -n someone -V 20240101:20240201 key.pub
ssh-keygen -L -f key-cert.pub | grep -v SHA256
ssh -G somewhere | head -3
