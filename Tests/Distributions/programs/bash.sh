# packages: bash
# records: bash
# status: 9
# version: bash -c 'echo $BASH_VERSION'
# quick
cat >script <<'END'
declare -A seen; total=0
for ((n = 0; n < 500; n++)); do seen[k$((n % 17))]=$n; ((total += n)); done
[[ "abc-123" =~ ([a-z]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]} $total ${#seen[@]}"
mapfile -t lines < <(printf '%s\n' one two three)
for line in "${lines[@]}"; do (echo "in a subshell: ${line^^}"; exit 3) || echo "status $?"; done
coproc cat; echo "to the coprocess" >&"${COPROC[1]}"; read -r back <&"${COPROC[0]}"; echo "$back"; exec {COPROC[1]}>&-; wait
printf '%(%Y)T %q\n' 0 "a b"
trap 'echo on USR1' USR1; kill -USR1 $$
trap 'echo at the end' EXIT
seq 2000 | sort -r | { read -r first; cat >/dev/null; echo "$first ${PIPESTATUS[0]}"; }
text=$(cat <<<"here"; exit 5); echo "$text $?"
no_such_command; echo "status $?"
exit 9
END
bash script
