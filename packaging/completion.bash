# Completion of allfold's command line, for bash. Commands, options and their choices come from the program's --help, read
# once a shell; installed as .../bash-completion/completions/allfold, where bash-completion finds it.

# Fills _allfold_help[COMMAND] ("" for the program itself).
declare -gA _allfold_help

_allfold_ask()  # PROGRAM COMMAND
{
    if [[ -z ${_allfold_help[x$2]-} ]]; then
        _allfold_help[x$2]=$(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$1" $2 --help 2>/dev/null)
    fi
}

_allfold()
{
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= option= words
    [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != help ]] && command=${COMP_WORDS[1]}
    COMPREPLY=()
    _allfold_ask "$program" "$command"
    local help=${_allfold_help[x$command]}

    if [[ -z $command ]]; then
        words=$(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z0-9-]*\) .*/\1/p' <<<"$help")
        COMPREPLY=($(compgen -W "$words help --help --version" -- "$current"))
        return
    fi
    # "--option=word" is one word to the shell, or three where = breaks words
    if [[ $current == --*=* ]]; then
        option=${current%%=*} current=${current#*=}
    elif [[ $before == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        option=$before current=
    fi
    if [[ -n $option ]]; then
        words=$(sed -n "s/^ *\(-[a-z], \)\{0,1\}$option=\([^ ]*\).*/\2/p" <<<"$help")
        case $words in
        *TYPE*) words=$(sed -n 's/^TYPE is one of \(.*\)\.$/\1/p' <<<"$help") ;;
        FILE) COMPREPLY=($(compgen -f -- "$current")) words= ;;
        *[A-Z]*) words= ;;
        *) words=${words//|/ } ;;
        esac
        [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))
        [[ ${COMP_WORDBREAKS-} != *=* ]] && COMPREPLY=("${COMPREPLY[@]/#/$option=}")
    elif [[ $current == -* ]]; then
        words=$(sed -n 's/^ \{2,6\}\(-[a-z], \)\{0,1\}\(--[a-z-]*=\{0,1\}\).*/\2/p' <<<"$help")
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        [[ ${#COMPREPLY[@]} = 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}
complete -F _allfold allfold
