#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is generated from the option tables: help of one screen, a manual page per command, and
# completions that the shells accept and that know options, values and commands.
# shellcheck disable=SC2016 # programs of other shells
. "$(dirname "$0")/cli.sh"

expect 0 "$IOBENCH" --help
[ "$(printf '%s\n' "$out" | wc -l)" -le 50 ] || die "the help is longer than a screen"
commands=$(printf '%s\n' "$out" | sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -gt 20 ] || die "no commands"

# ---- manual pages: those installed are those of the commands ----
for command in $commands; do
    page=iobench-$command.1
    [ -s "$PROGRAMS/packaging/man/$page" ] || [ -s "$SRCDIR/packaging/man/$page" ] || die "$page is not installed: packaging/man/local.mk"
    expect 0 "$IOBENCH" help "$command" --man
    says '.SH NAME' "iobench-$command" '.SH SYNOPSIS' '.SH DESCRIPTION' '.SH "COMMON OPTIONS"'
    printf '%s\n' "$out" >>pages
done
expect 0 "$IOBENCH" help --man
printf '%s\n' "$out" >>pages
says "iobench\\-run" '.SH PLUG-INS'
if command -v groff >/dev/null; then
    warned=$(groff -man -Tutf8 -ww pages 2>&1 >/dev/null | head)
    [ -z "$warned" ] || die "groff: $warned"
fi
expect 0 "$IOBENCH" help run --man
says '\-\-drop\-caches' '.SH EXAMPLES'

# ---- completions ----
for shell in bash zsh fish; do
    "$IOBENCH" completion $shell >completion.$shell || die "no completion of $shell"
    ! command -v $shell >/dev/null || expect 0 $shell -n completion.$shell
done
has() { # WORD...: a line of $out begins with each
    for word; do
        case "
$out" in *"
$word"*) ;; *) die "does not complete '$word'" ;; esac
    done
}
if command -v bash >/dev/null; then
    complete='source ./completion.bash; compopt() { :; }; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _iobench; printf "%s\n" "${COMPREPLY[@]}"'
    expect 0 bash -c "$complete" bash iobench run --shuf
    has --shuffle=
    expect 0 bash -c "$complete" bash iobench run --shuffle = tfd
    has tfdata
    expect 0 bash -c "$complete" bash iobench train --decode = ''
    has jpeg none
    expect 0 bash -c "$complete" bash iobench sw
    has sweep
fi
if command -v fish >/dev/null; then
    for words in 'run --shuf' 'run --shuffle tfd' '--drop-caches=str' 'sw'; do
        HOME=$T expect 0 fish --no-config -c "source completion.fish; complete -C 'iobench $words'"
        printf '%s\n' "$out" >>fish
    done
    out=$(cat fish)
    has --shuffle tfdata --drop-caches=strict sweep
fi
if command -v zsh >/dev/null; then
    complete='compdef() { :; }; _arguments() { print -rl -- "$@"; }; _describe() { print -rl -- $commands; }
        _files() { :; }; source ./completion.zsh; words=("$@") CURRENT=$#; _iobench'
    expect 0 zsh -fc "$complete" zsh iobench ''
    says run: sweep:
    expect 0 zsh -fc "$complete" zsh iobench sweep --shuf
    says --shuffle= --runs=
    says "shuffle strategy" ":(auto epoch"
    expect 0 zsh -fc "$complete" zsh iobench --dr
    says "--drop-caches=-"
    says "(no yes strict )"
fi
echo "help, manual pages and completions are complete"
