# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Completes kmesctl in bash: commands, and the options of a command. Both come from --help.

_kmesctl() {
    local program=$1 current=${COMP_WORDS[COMP_CWORD]} command='' words i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
            -*) ;;
            *) command=${COMP_WORDS[i]} && break ;;
        esac
    done
    if [ -z "$command" ]; then
        words=$("$program" --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
    elif [[ $current == -* ]]; then
        words=$("$program" "$command" --help 2>/dev/null |
            sed -nE 's/^  (-[a-z],)?(--[a-z-]+).*/\2/p')
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _kmesctl kmesctl
