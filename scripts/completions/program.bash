
# After -- stand a program and its arguments: they are completed as on a line of their own.
_tracer_or_program() {
    local word="${COMP_WORDS[COMP_CWORD]}"
    local -i n
    for ((n = 2; n < COMP_CWORD; n++)); do
        [[ "${COMP_WORDS[n]}" == -- ]] || continue
        if declare -F _comp_command_offset >/dev/null; then # bash-completion 2.12
            _comp_command_offset $((n + 1))
        elif declare -F _command_offset >/dev/null; then
            _command_offset $((n + 1))
        elif ((COMP_CWORD == n + 1)) && [[ "${word}" != */* ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "${word}")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "${word}")
        fi
        return
    done
    _tracer "$@"
}

complete -o filenames -F _tracer_or_program tracer
