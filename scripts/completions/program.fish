
# After -- stand a program and its arguments: they are completed as on a line of their own.
function __tracer_complete_program
    set -l words (commandline -opc)
    set -e words[1..(contains -i -- -- $words)]
    complete -C "$(string join ' ' -- (string escape -- $words) (commandline -ct))"
end
complete -c tracer -n 'contains -- -- (commandline -opc)' -xa '(__tracer_complete_program)'
