#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train, ended by SIGKILL at random moments: the last checkpoint is readable, training resumes from
# it and ends with the same weights as undisturbed training, and partial files do not accumulate.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

expect 0 "$IOBENCH" pack synthetic:count=60,classes=3,mean=6k,seed=5 set
train() { # OPTION...
    "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 20 -t 1 \
        --compute-threads 1 --seed 3 --lr 0.001 --epochs 12 "$@"
}
# Print everything between the header, which has the time, and the CRC.
bits() { tail -c +129 "$1/last.checkpoint" | head -c -4 | cksum; }
seconds=$(took train --checkpoint straight)
undisturbed=$(bits straight)

count=$(rounds 6 220)
killed=0 finished=0 courses=0
while [ $killed -lt "$count" ]; do
    rm -rf kept
    courses=$((courses + 1)) resume=
    # Kill it repeatedly, until it completes or the limit of kills is reached.
    while :; do
        # shellcheck disable=SC2086 # an option or none; exec: kill the program, not the shell
        kill_within "$seconds" "$IOBENCH" train --network lenet --size 32 --classes 3 --data set \
            --batch-size 20 --decode-threads 1 --compute-threads 1 --seed 3 --lr 0.001 --epochs 12 \
            --checkpoint kept $resume
        [ "$ended" != 0 ] || break
        killed=$((killed + 1))
        [ ! -e kept/last.checkpoint ] || resume=--resume
        drafts=$(find kept -name '.*.partial' 2>/dev/null | wc -l)
        [ "$drafts" -le 1 ] || die "$drafts drafts are left: $(ls -A kept)"
        if [ -n "$resume" ] && [ $killed -ge "$count" ]; then
            break
        fi
        if [ -n "$resume" ]; then # valid at each of these moments
            expect 0 "$IOBENCH" infer --network lenet --size 32 --classes 3 --data set -t 1 \
                --compute-threads 1 --checkpoint kept --batch-size 20 --limit-samples 20
        fi
    done
    if [ "$ended" != 0 ]; then
        train --checkpoint kept $resume >log 2>&1 || grep -q "epochs are done" log || die "$(cat log)"
    fi
    finished=$((finished + 1))
    [ "$(bits kept)" = "$undisturbed" ] || die "other weights than undisturbed"
    left=$(find kept -name '.*' ! -path kept)
    [ -z "$left" ] || die "left behind: $left"
done
echo "killed $killed times in $courses trainings: each ended with the weights of an undisturbed one"
