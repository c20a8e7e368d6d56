#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack, ended by SIGKILL at random moments: the target is then complete, or every command refuses
# it; the same command completes it, with the same result as an undisturbed pack.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

SOURCE=synthetic:count=120,classes=5,mean=12k,seed=3
all=$(formats)
for format in $all; do
    pack_time=$(took "$IOBENCH" pack $SOURCE "whole-$format" --format "$format" -t 1)
    echo "$pack_time" >"time-$format"
done
undisturbed=$(digest "whole-shards")
[ -n "$undisturbed" ] || die "no digest"

count=$(rounds 10 250)
killed=0 partial=0 complete=0 round=0
while [ $round -lt "$count" ]; do
    for format in $all; do
        [ $round -lt "$count" ] || break
        round=$((round + 1))
        set -- "$IOBENCH" pack $SOURCE set --format "$format" -t 1
        case $format in recordio | shards | tar) set -- "$@" --shards 4 ;; esac
        rm -rf set
        kill_within "$(cat "time-$format")" "$@"
        [ "$ended" = 0 ] || killed=$((killed + 1))
        if "$IOBENCH" verify set >verify.log 2>&1; then
            complete=$((complete + 1))
            [ "$(digest set)" = "$undisturbed" ] || die "$format, killed after $moment s: verify accepts a part: $(cat verify.log)"
            # Killed between its last two steps: the lock of a dead process is harmless.
            rm -f set/.iobench-lock
        else
            partial=$((partial + 1))
            [ ! -d set ] || refused set "$IOBENCH" inspect set # else a usage error
            for command in "run --runs 1 --no-calibrate --decode checksum" "shuffle none" \
                "train --network lenet --size 32 --classes 5 --batch-size 8"; do
                # shellcheck disable=SC2086 # words
                "$IOBENCH" $command --data set >log 2>&1 && die "$format, killed after $moment s: $command takes a part of a set"
            done
            [ ! -d set ] || refused set "$IOBENCH" pack set elsewhere
            [ ! -e elsewhere ] || die "a part of a set was packed"
            expect 0 "$@"
        fi
        expect 0 "$IOBENCH" verify set
        says "120 records" "no fault"
        [ "$(digest set)" = "$undisturbed" ] || die "$format, killed after $moment s: other samples than undisturbed"
        left=$(find set -name '.*' ! -name .iobench-set ! -name .iobench-index)
        [ -z "$left" ] || die "$format, killed after $moment s: left behind: $left"
    done
done
echo "$count rounds: $killed killed, $partial left a part, which was refused and completed, $complete a whole set"
