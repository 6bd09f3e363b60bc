# For zsh's completions: after -- stand a program and its arguments, which are completed as on a line of their own.
s/'\*:program:'/'*::program: _tracer_program'/
/^#compdef tracer/a\
\
_tracer_program() {\
    if [[ "${words[1]}" == -- ]]; then\
        shift words\
        ((CURRENT--))\
    fi\
    _normal\
}
