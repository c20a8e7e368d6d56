#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One class of mistake has one exit status in every command: 2 for what is seen before any work (a
# missing path, a result that could not be written), 1 for what only its contents show.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"

try 0 pack synthetic:count=16,classes=2,mean=6000 set
job="-t 1 --calibrate=no --runs 1 --sample-interval none --memory 16m"
# shellcheck disable=SC2086 # words
try 0 --data set $job --json one.json
mkdir empty
: >zero
echo "some text" >text
rm -f out err
before=$(ls)

data="run|train --network tiny|infer --network tiny|ramp|shuffle|sweep|sweep train"
reads="verify|inspect|show|pack"
files="compare|gather|report|plot|size"

# each COMMANDS: try every one of them on $path.
each() {
    IFS='|'
    # shellcheck disable=SC2086 # split at |
    set -- $1
    unset IFS
    for command; do
        case "|$data|" in
        *"|$command|"*) words="$command --data $path" ;;
        *) words="$command $path" ;;
        esac
        case $command in
        pack) words="$words packed" ;;
        gather) words="$words one.json" ;;
        esac
        # shellcheck disable=SC2086 # words
        try "$code" $words
        err "$said"
    done
}

code=2 path=nowhere said=nowhere
each "$data|$reads|$files"
path=one.json/below said=one.json/below
each "$data|$reads|$files"
path=s3://bucket/set said="no client for this kind of storage"
each "$data|$reads"

# A variable of the shell that is not set.
for command in "" verify inspect show compare report size checkpoint monitor "run --data" "run --json" "shuffle --data" "sweep --csv" "pack set"; do
    # shellcheck disable=SC2086 # words
    try 2 $command ""
    err "an empty name; is a variable of the shell unset?"
done

code=1
for path in empty zero text; do
    case $path in
    empty) said="empty folder; is its file system mounted?" ;;
    zero) said="an empty file" ;;
    text) said="unknown format" ;;
    esac
    each "run|train --network tiny|infer --network tiny|ramp|shuffle|$reads"
done
# With a format named, too; and a set of another format says which.
for format in recordio shards lmdb tar files mds; do
    for command in "run --data" verify inspect; do
        # shellcheck disable=SC2086 # words
        try 1 $command empty --format $format
        err "empty folder; is its file system mounted?"
        test "$format" = shards && continue
        # shellcheck disable=SC2086 # words
        try 1 $command set --format $format
        err "; it looks like shards"
    done
done
path=text said="text:1:"
each "$files"
path=empty said="is a folder"
each "$files"

# A result that cannot be written is seen before the work: there is no other output.
for path in nowhere/x one.json/x; do
    case $path in
    nowhere/x) said="cannot open the folder: No such file or directory" ;;
    *) said="is a regular file, expected a folder" ;;
    esac
    for command in "run --data set $job --json" "train --data set --network tiny --json" "infer --data set --network tiny --json" \
        "inspect set --json" "verify set --json" "compare one.json one.json --json" "size one.json --json" "shuffle --data set --json" \
        "plan tiny --json" "gather one.json one.json --output" "show set --output" "plot one.json --output" "report one.json --output" \
        "sweep --data set --json" "ramp --data set --json" "checkpoint folder --json" "net --json"; do
        # shellcheck disable=SC2086 # words
        try 2 $command=$path
        err "${path%/x}: $said"
        empty out
    done
done
echo '{"schema": "https://example.org/package.json", "name": "iobench-result"}' >foreign
for file in text foreign; do
    cp "$file" kept
    for command in "run --data set $job" "train --data set --network tiny" "inspect set" "verify set" "compare one.json one.json" \
        "shuffle epoch" "plan tiny" "show set" "doctor ." "sweep --data set" "ramp --data set" "checkpoint folder"; do
        # shellcheck disable=SC2086 # words
        try 2 $command --json=kept
        err "not replaced"
        empty out
        cmp -s "$file" kept || fault "it replaced a file that is no result"
    done
done
# Its own file is.
for command in "inspect set" "verify set" "shuffle epoch" "plan tiny" "show set" "doctor ." list size; do
    rm -f kept
    # shellcheck disable=SC2086 # words
    { try 0 $command --json=kept && try 0 $command --json=kept; } || fault "not replaced"
done
rm foreign

# Two results in one file: the first was lost, or the second refused, after the work.
for outputs in "--json=both --csv=both" "--csv=both --series=./both" "--json=$PWD/both --profile both"; do
    # shellcheck disable=SC2086 # words
    try 2 run --data set $job $outputs
    err "named for two outputs"
    empty out
done
for command in "shuffle --data set --json=both --csv" "train --data set --network tiny --csv both --export" "sweep --data set --csv both --json"; do
    # shellcheck disable=SC2086 # words
    try 2 $command ./both
    err "named for two outputs"
    [ ! -e both ] || fault "it was written"
done
# shellcheck disable=SC2086 # words
try 0 run --data set $job --json /dev/null --csv /dev/null

# Too little memory names the shuffle that needs more, also for the ceiling.
try 1 --data set --memory 1
err "shuffle epoch holds 1 records"

# None left anything behind.
rm -f kept out err
[ "$(ls)" = "$before" ] || fault "files before: $before; now: $(ls)"
finish
