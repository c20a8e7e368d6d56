#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each command in README.md and docs/ is valid: in backticks, in a table, or a line of a code block.
# features.sh runs those of docs/features.md. Each link leads to a file, and docs/README.md to each page.
# shellcheck disable=SC2016 # backticks of Markdown
. "$(dirname "$0")/cli.sh"

# commands FILE...: print "FILE|WORDS" for each command of ours, without launcher; none with "..." or
# "[", which are patterns, and no name of a command alone.
commands() {
    awk '
    function emit(words) {
        gsub(/[ \t\n]+/, " ", words)
        sub(/ # .*$/, "", words)
        if (sub(/^ ?([^ ]*[#$] )?(sudo )?((mpirun|srun) [^|]* )?iobench /, "", words) &&
            words ~ / / && words !~ /\.\.\.|\[|^[0-9]|^[a-z]*: /) print FILENAME "|" words
    }
    function paragraph(   i, count, parts) {
        count = split(text, parts, "`")
        for (i = 2; i <= count; i += 2) emit(parts[i])
        text = ""
    }
    FNR == 1 { paragraph(); line = "" }
    /^    / || line != "" {
        line = line " " $0
        if (sub(/\\$/, "", line)) next
        sub(/^ */, "", line)
        emit(line)
        line = ""
        next
    }
    /^$/ || /^\|/ { paragraph() }
    { text = text "\n" $0 }
    /^\|/ { paragraph() }
    END { paragraph() }' "$@"
}

# invalid FILE: print what a dry run refuses of the commands of FILE.
invalid() {
    {
        printf '[study]\ntitle=Documents\nfound=Nothing.\nsource=none\n'
        commands "$1" | sed -e 's/^[^|]*|//' -e 's,^[-/],run &,' | grep -vE '^(study|sweep|help) ' |
            awk '{ printf "[run %d]\ncommand=%s\n", NR, $0 }'
    } >commands.ini
    grep -q '^command=' commands.ini || return 0
    "$IOBENCH" study ./commands.ini --dry-run --allow-commands 2>&1 >/dev/null | sed "s|^|$1: |"
}

printf 'Not `iobench verify` alone. In a\nparagraph: `iobench\nrun --iodepths 3`.\n' >wrong.md
[ -n "$(invalid wrong.md)" ] || die "a wrong command in a paragraph passes"
printf '    # mpirun -n 2 iobench run \\\n        --no-such-option 1\n' >wrong.md
[ -n "$(invalid wrong.md)" ] || die "a wrong command in a code block passes"
printf '| how? | `iobench size --gpu none --gpus` |\n' >wrong.md
[ -n "$(invalid wrong.md)" ] || die "a wrong command in a table passes"

# broken FILE: print its links to files that do not exist.
broken() {
    sed 's/](/\n](/g' "$1" | sed -n 's/^](\([^):]*\)).*/\1/p' | sed 's/#.*//' | grep . | sort -u | while read -r link; do
        [ -e "${1%/*}/$link" ] || echo "$1: link to $link"
    done
}
echo '[there](./there.md)' >wrong.md
[ -n "$(broken ./wrong.md)" ] || die "a broken link passes"

count=0
for path in "$SRCDIR"/README.md "$SRCDIR"/docs/*.md "$SRCDIR"/docs/studies/*.md "$SRCDIR"/docs/results/*.md \
    "$SRCDIR"/docs/decisions/*.md "$SRCDIR"/docs/examples/*.md "$SRCDIR"/decode/baseline/*.md; do
    faults=$(invalid "$path"; broken "$path")
    [ -z "$faults" ] || die "$faults"
    count=$((count + $(grep -c '^command=' commands.ini)))
done
for path in "$SRCDIR"/docs/*.md; do
    grep -q "(${path##*/})" "$SRCDIR/docs/README.md" || [ "${path##*/}" = README.md ] ||
        die "docs/README.md does not list ${path##*/}"
done
[ $count -gt 250 ] || die "only $count commands are found"
# The defaults of the shuffles in docs/shuffle.md are the program's; of the first option those in brackets.
defaults() { # NAME: print "OPTION DEFAULT" for each option
    "$IOBENCH" help "$1" | awk '/^      [a-z]/ { option = $1; sub(/=.*/, "", option) }
        option && match($0, /\[[^]]*\]$/) { print option, substr($0, RSTART + 1, RLENGTH - 2) }'
}
sed -n '/^| shuffle /,/^$/p' "$SRCDIR/docs/shuffle.md" | awk -F'|' '{
    cell = $2
    name = cell
    sub(/^ `/, "", name)
    sub(/[:`].*/, "", name)
    if (match(cell, /\([^ ]*\)/)) print name, "first", substr(cell, RSTART + 1, RLENGTH - 2)
    while (match(cell, /`[a-z]*=[^`]*`/)) {
        split(substr(cell, RSTART + 1, RLENGTH - 2), pair, "=")
        print name, pair[1], pair[2]
        cell = substr(cell, RSTART + RLENGTH)
    }
}' >stated
[ "$(wc -l <stated)" -gt 15 ] || die "few defaults are stated: $(cat stated)"
while read -r name option default; do
    if [ "$option" = first ]; then
        [ "$(defaults "$name" | head -n 1 | cut -d ' ' -f 2)" = "$default" ]
    else
        defaults "$name" | grep -qx "$option $default"
    fi || die "docs/shuffle.md: $name has another $option than $default: $(defaults "$name")"
done <stated
commands "$SRCDIR"/README.md "$SRCDIR"/docs/*.md "$SRCDIR"/docs/studies/*.md |
    sed -n 's/^[^|]*|\(study [a-z][^|<]*\|sweep .*\)$/\1/p' | sort -u >dry
while read -r words; do
    eval "set -- $words"
    expect 0 "$IOBENCH" "$@" --dry-run
done <dry
echo "$((count + $(wc -l <dry))) commands of the documents are valid"
