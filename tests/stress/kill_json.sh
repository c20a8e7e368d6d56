#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run --json, ended by SIGKILL at random moments: the file is the old result or the new one, never a
# partial one.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

expect 0 "$IOBENCH" pack synthetic:count=20,mean=4k set
expect 0 "$IOBENCH" run --data set --runs 1 --no-calibrate --decode checksum --label 0 --json out.json # creates the index
seconds=$(took "$IOBENCH" run --data set --runs 1 --no-calibrate --decode checksum --label 0 --json out.json)

count=$(rounds 10 250)
killed=0 new=0 label=0 round=0
while [ $round -lt "$count" ]; do
    round=$((round + 1))
    kill_within "$seconds" "$IOBENCH" run --data set --runs 1 --no-calibrate --decode checksum \
        --label $round --json out.json
    [ "$ended" = 0 ] || killed=$((killed + 1))
    expect 0 "$IOBENCH" size out.json --gpus 1 --gpu v100 # reads all of it
    found=$(sed -n "s/.*\"label\": \"\([0-9]*\)\".*/\1/p" out.json | head -n 1)
    [ "$found" = $round ] || [ "$found" = "$label" ] || die "the result of run $found, neither $label nor $round"
    [ "$found" != $round ] || new=$((new + 1))
    [ "$ended" != 0 ] || [ "$found" = $round ] || die "a run that succeeded left the old result"
    label=$found
done
echo "$count rounds: $killed killed, $new new results, $((count - new)) old ones, all whole"
