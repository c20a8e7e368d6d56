#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sweep, ended by SIGKILL at random moments: the same command resumes; saved measurements do not
# change, and in the end each exists exactly once, and no other file.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

expect 0 "$IOBENCH" pack synthetic:count=40,mean=6k,seed=5 set
sweep() { # OPTION...
    "$IOBENCH" sweep --data set --no-calibrate --decode none --memory 16m --batch-size 5,10 --seed 1:3:+1 \
        --shuffle epoch,none --runs 1 "$@"
}
kept() { find kept -name 'cell-*.json' -printf '%f %i %T@\n' 2>/dev/null | sort; }
seconds=$(took sweep -o straight)

count=$(rounds 6 200)
killed=0 sweeps=0
while [ $killed -lt "$count" ]; do
    rm -rf kept
    sweeps=$((sweeps + 1))
    : >before
    while :; do
        # exec: kill the program, not the shell
        kill_within "$seconds" "$IOBENCH" sweep --data set --no-calibrate --decode none --memory 16m \
            --batch-size 5,10 --seed 1:3:+1 --shuffle epoch,none --runs 1 -o kept
        kept >after
        lost=$(comm -23 before after)
        [ -z "$lost" ] || die "killed $moment s after its start: it lost, or measured again: $lost"
        mv after before
        [ "$ended" != 0 ] || break
        killed=$((killed + 1))
        [ $killed -lt "$count" ] || break
    done
    expect 0 sweep -o kept
    says "12 measured, 12 valid"
    kept >after
    [ -z "$(comm -23 before after)" ] || die "the last one measured again: $(comm -23 before after)"
    others=$(find kept -mindepth 1 ! -name 'cell-000??-run-1.json' ! -name sweep.json)
    [ -z "$others" ] || die "it left: $others"
done
echo "$killed kills of $sweeps sweeps"
