#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each command of docs/features.md is valid, and the short ones run; IOBENCH_LONG=1 runs those of one
# process, on a small set. A row that needs a GPU says so where there is none.
# shellcheck disable=SC2034,SC2154 # out is that of cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"
command -v jq >/dev/null || skip "jq is not installed"

# A line "ROW|HERE|COMMAND" for each text in backticks that is a command of ours, without launcher.
sed -n 's/^| \([0-9][0-9]*\) |[^|]*|\([^|]*\)| \([^|]*\) |.*/\1|\3|\2/p' "$SRCDIR/docs/features.md" |
    awk -F'|' '{
        count = split($3, parts, "`")
        for (i = 2; i <= count; i += 2)
            if (sub(/^(mpirun -n [0-9]+ )?iobench /, "", parts[i])) print $1 "|" $2 "|" parts[i]
    }' >rows
[ "$(cut -d'|' -f1 rows | sort -nu | tr '\n' ' ')" = "$(seq -s ' ' 46) " ] ||
    die "not every row of features.md has a command: $(cut -d'|' -f1 rows | sort -nu | tr '\n' ' ')"
cut -d'|' -f2 rows | grep -qvE '^(Y|needs a GPU)$' && die "a row is neither Y nor needs a GPU"

# A study checks commands of every kind against their option tables, and runs nothing.
{
    printf '[study]\ntitle=Features\nfound=Nothing.\nsource=none\n'
    grep -vE '\|(study|sweep) ' rows | awk -F'|' '{ printf "[run %d %s]\ncommand=%s\n", NR, $1, $3 }'
} >features.ini
expect 0 "$IOBENCH" study ./features.ini --dry-run --allow-commands
[ "$(printf '%s\n' "$out" | grep -c '^iobench ')" = "$(grep -vcE '\|(study|sweep) ' rows)" ] || die "a command is missing"
sed 's/--memory-limit/--memory-limits/' features.ini >wrong.ini
expect 2 "$IOBENCH" study ./wrong.ini --dry-run --allow-commands
says "memory-limits"

expect 0 "$IOBENCH" pack synthetic:count=40,classes=3,mean=4k,seed=5 set --shards 2
expect 0 "$IOBENCH" run --data set --runs 1 --no-calibrate --json result.json
again result.json again.json
filled() { # NUMBER COMMAND: with real names
    printf '%s\n' "$2" | sed -e "s/SOURCE/synthetic:count=40,mean=4k/g; s/SET/set/g; s/NEW/new-$1/g" \
        -e "s/: RESULT/: again.json/; s/RESULT/result.json/g; s/COMMAND/true/g"
}

# Studies and sweeps have a dry run of their own; study.sh makes those of studies without options.
grep -E '\|(study [a-z]* -|sweep )' rows >dry
while IFS='|' read -r _ _ words; do
    eval "set -- $(filled 0 "$words")"
    expect 0 "$IOBENCH" "$@" --dry-run
done <dry

# Short commands run.
number=0
while IFS='|' read -r row needs words; do
    number=$((number + 1))
    case $row in
    1 | 3 | 7 | 12 | 17 | 18 | 20 | 24 | 27 | 29 | 35 | 38 | 42) ;;
    # Hours, a checkpoint of 8 billion parameters, or a control group.
    2 | 4 | 10 | 11 | 15 | 16 | 19 | 21 | 22 | 23 | 25 | 28 | 30 | 33 | 41 | 43 | 44) continue ;;
    *) [ -n "${IOBENCH_LONG-}" ] || continue ;;
    esac
    case $words in
    study* | sweep* | "run --as mxnet") continue ;; # without --data it makes a set
    "monitor -- "*) ;;
    monitor*) words="$words --count 1 --interval 20ms" ;;
    esac
    words=$(filled $number "$words")
    out=$(eval "\"\$IOBENCH\" $words" 2>&1 </dev/null) && continue
    case $needs,$out in
    needs*GPU* | needs*NVIDIA* | needs*cuda* | needs*nccl* | needs*p2p*) ;;
    *"this build"* | *"no InfiniBand"* | *"not on NFS"*) ;;
    *) die "row $row: iobench $words" ;;
    esac
done <rows
echo "$(wc -l <rows) commands of 46 features are valid"
