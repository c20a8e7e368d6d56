#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is refused, and its whole text: tests/cli/saved/refusals-*.txt are sessions. Each line that begins with "$ " is run
# by a shell; below it stand its output, its messages ("! ") and its exit status, or that it is accepted. A new case is a
# new line "$ ..." and UPDATE=1, which rewrites what stands below each; check the difference by hand. This script runs all;
# each refusals-*.sh a share, the sections of a session whose heading it names.
# shellcheck disable=SC2154,SC2034,SC2329 # tmp and tried are those of streams.sh; the sessions call the functions
. "$(dirname "$0")/streams.sh"
for feature in MPI NFS URING ARCHIVE; do
    built_with $feature || skip "built without $feature, which has texts of its own"
done
COLUMNS=80
LC_ALL=C
export COLUMNS LC_ALL
unset IOBENCH_MODULES MONGO 2>/dev/null

iobench() { "$IOBENCH" "$@"; }
put() { # FILE LINE...
    file=$1
    shift
    printf '%s\n' "$@" >"$file"
}
poke() { # FILE OFFSET BYTES: into a copy, named bad, of a data set or file
    rm -rf bad && cp -R "$1" bad && file=bad${2:+/$2}
    # shellcheck disable=SC2059 # escapes
    printf "$4" | dd of="$file" bs=1 seek="$3" conv=notrunc 2>/dev/null
}
cut_at() { # SET FILE BYTES: a copy, named bad, whose file ends there
    rm -rf bad && cp -R "$1" bad && truncate -s "$3" "bad${2:+/$2}"
}
job() { # LINE...: a job file
    put j.ini "$@" && iobench run j.ini --dry-run
}
table() { # EXPRESSION: a study with a column of it
    put s.ini '[study]' title=T question=Q found=F source=S '[run one]' 'command=plan lenet' '[table]' "column=x: $1" &&
        iobench study ./s.ini --dry-run
}
size_of() { # SECTION LINE...: of a profile of storage
    section=$1
    shift
    put p.ini "[$section]" source=me "$@" && iobench size --simulate --draws 20 --storage ./p.ini
}
image() { # BYTES: a set of one such file
    rm -rf bad && mkdir -p bad/00000
    # shellcheck disable=SC2059 # escapes
    printf "$1" >bad/00000/a.jpg
    iobench verify bad || iobench inspect bad
}
edited() { # SET SCRIPT: with another index.json
    rm -rf bad && cp -R "mds/$1" bad && sed "$2" "mds/$1/index.json" >bad/index.json
    iobench verify bad -f mds
}

SECTIONS=${SECTIONS-1}
for session in "$SRCDIR"/tests/cli/saved/refusals-${SESSION-*}.txt; do
    name=$(basename "$session")
    tried=$name
    mkdir "$T/$name" && cd "$T/$name" || exit 1
    for format in tar recordio mds tfrecord; do
        cp -R "$SRCDIR/tests/golden/$format" .
    done
    chmod -R u+w .
    awk "BEGIN { on = $SECTIONS } /^# ---- / { on = $SECTIONS } on" "$session" >"$T/part"
    while IFS= read -r line; do
        case $line in
        '$ '*)
            printf '%s\n' "$line"
            (eval "${line#??}") >"$T/one" 2>"$T/two" </dev/null
            status=$?
            if [ $status = 0 ]; then
                echo accepted
            else
                sed 's/^/  /' "$T/one"
                sed '/^Try .iobench help/d; s/^/! /' "$T/two"
                echo "[$status]"
            fi
            ;;
        '' | '#'*) printf '%s\n' "$line" ;;
        esac
    done <"$T/part" |
        # What this build has, and where it is tested.
        sed "s|$T/$name|HERE|g; s|$T|ABOVE|g; s/draft-[a-z0-9]*/draft-NAME/; s|$PROGRAMS/iobench|iobench|g; s/iobench [0-9][0-9.]*[0-9]/iobench VERSION/
            s|, [0-9.,]* [mun]*s, [0-9.,e-]* .iB/s$|, TIME|
            /unknown \(reader\|decoder\|backend\|format\|transport\|source\|exchange\|probe\|writer\|trainer\)/s/(known: [^)]*)/(known: ...)/" >"$tmp/out"
    : >"$tmp/err"
    if [ "${UPDATE:-0}" = 0 ]; then
        diff -u "$T/part" "$tmp/out" || fault "differs from tests/cli/saved/$name"
    else
        saved "$name"
    fi
done
cd "$T" || exit 1
finish
