#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# checkpoint, ended by SIGKILL at random moments, through the page cache, bypassing it, and behind
# training: the last complete checkpoint can always be restored, no complete checkpoint is ever lost,
# and the next run removes incomplete ones.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

newest() {
    find "$mode" -maxdepth 1 -name 'checkpoint-*' | sed 's/.*-0*//' | sort -n | tail -n 1
}

campaign() { # ROUNDS OPTION...: in the folder $mode
    count=$1
    shift
    set -- "$IOBENCH" checkpoint "$mode" --bytes 4m --chunk 64k --ranks 4 --writes 4 --reads 0 --keep 2 --leave "$@"
    seconds=$(took "$@")
    killed=0 partial=0 round=0 last=$(newest)
    while [ $round -lt "$count" ]; do
        round=$((round + 1))
        kill_within "$seconds" "$@"
        [ "$ended" = 0 ] || killed=$((killed + 1))
        [ -z "$(find "$mode" -maxdepth 1 -name '.checkpoint-*.partial')" ] || partial=$((partial + 1))
        found=$(newest)
        [ "${found:-0}" -ge "$last" ] || die "$mode: checkpoint $last was there, now the newest is '$found'"
        last=$found
        expect 0 "$IOBENCH" checkpoint "$mode" --writes 0 --reads 2 # verifies every byte
        says "valid"
    done
    [ "$(find "$mode" -maxdepth 1 -name 'checkpoint-*' | wc -l)" -le 3 ] || die "more than were to be kept: $(ls "$mode")"
    expect 0 "$@"
    [ "$(find "$mode" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || die "left behind: $(ls -A "$mode")"
    echo "$mode: $count rounds: $killed killed, $partial while a checkpoint was written, all restored"
}

mode=cached
campaign "$(rounds 4 100)"
mode=direct
"$IOBENCH" checkpoint probe --bytes 64k --chunk 4k --writes 1 --reads 0 --direct >probe.log 2>&1 &&
    campaign "$(rounds 3 100)" --direct
grep -q "valid\|cannot bypass" probe.log || die "O_DIRECT fails otherwise: $(cat probe.log)"
mode=async
campaign "$(rounds 3 100)" --async --step-time 1ms --interval 2
