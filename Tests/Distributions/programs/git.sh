# packages: git
# records: git
# version: git --version
# quick
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c
set -e
git -c init.defaultBranch=main init -q there
cd there
git config gc.auto 0
git config maintenance.auto false
for n in 1 2 3; do
    i=0
    while [ $i -lt 50 ]; do i=$((i + 1)); echo "line $i of $((n * i))"; done >file$n
    git add file$n
    git commit -q -m "Add file $n"
done
git checkout -q -b side HEAD~1
echo more >>file1
git commit -q -a -m "Change file 1"
git rebase -q main
git log --oneline --graph --stat --all
git diff HEAD~2 | sha256sum
git grep -c 'line 4' HEAD
git repack -q -a -d
git fsck --strict
cd ..
git clone -q there again
git -C again status --short --branch
git -C again show no-such-thing || echo "status $?"
