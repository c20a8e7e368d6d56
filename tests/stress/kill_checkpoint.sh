#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# checkpoint, ended by SIGKILL at random moments: the last complete checkpoint can always be restored,
# no complete checkpoint is ever lost, and the next run removes incomplete ones.
# shellcheck disable=SC2154 # ended and moment are those of stress.sh
. "$(dirname "$0")/stress.sh"

write="$IOBENCH checkpoint dir --bytes 4m --chunk 64k --ranks 4 --writes 4 --reads 0 --keep 2 --leave"
newest() {
    find dir -maxdepth 1 -name 'checkpoint-*' | sed 's/.*-0*//' | sort -n | tail -n 1
}
# shellcheck disable=SC2086 # words
seconds=$(took $write)

count=$(rounds 10 100)
killed=0 partial=0 round=0 last=$(newest)
while [ $round -lt "$count" ]; do
    round=$((round + 1))
    # shellcheck disable=SC2086
    kill_within "$seconds" $write
    [ "$ended" = 0 ] || killed=$((killed + 1))
    set -- dir/.checkpoint-*.partial
    [ ! -e "$1" ] || partial=$((partial + 1))
    found=$(newest)
    [ "${found:-0}" -ge "$last" ] || die "checkpoint $last was there, now the newest is '$found'"
    last=$found
    expect 0 "$IOBENCH" checkpoint dir --writes 0 --reads 2 # verifies every byte
    says "valid"
done
[ "$(find dir -maxdepth 1 -name 'checkpoint-*' | wc -l)" -le 3 ] || die "more than were to be kept: $(ls dir)"
# shellcheck disable=SC2086
expect 0 $write
[ "$(find dir -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || die "left behind: $(ls -A dir)"
echo "$count rounds: $killed killed, $partial while a checkpoint was written, all restored"
