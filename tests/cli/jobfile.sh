#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Job files: sections, global options, errors with file and line.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
ON_DISK=yes
. "$(dirname "$0")/streams.sh"
make_set recordio 40

cat >"$tmp/good.ini" <<EOF
; two jobs
[global]
data=$tmp/recordio
batch_size = 8
runs=1
calibrate=no
json=$tmp/all.json

[one]
shuffle=none
[two]
  shuffle = buffer:5
digest
EOF
try 0 "$tmp/good.ini"
out ": one"
out ": two"
out "shuffle none"
out "shuffle buffer:5"
out "batches of 8"
out "Digest"
out "samples/s       MiB/s  to the first"
empty err
# One table compares them at the end.
grep -qE '^one +[0-9.,]+ +[0-9.,]+$' "$tmp/out" || fault "no line of the first job"
grep -qE '^two +[0-9.,]+ +[0-9.,]+ +[-+][0-9.]+%$' "$tmp/out" || fault "no line of the second job"
[ "$(grep -c '"samples_per_s_low95"' "$tmp/all.json")" -eq 2 ] || fault "not both jobs in the JSON"
# Nor does it compare what a reader may not take for comparable without a word.
make_set shards 40
shard=$(find "$tmp/shards" -name 'train-*' ! -name '*.idx' | head -n 1)
printf 'damage' | dd of="$shard" bs=1 seek=$(($(wc -c <"$shard") / 2)) conv=notrunc status=none
cat >"$tmp/marks.ini" <<EOF
[global]
decode=checksum
runs=1
calibrate=no
[sound]
data=$tmp/recordio
[damaged]
data=$tmp/shards
on-error=skip
[no result]
data=$tmp/shards
EOF
try 1 "$tmp/marks.ini"
out "damaged is DEGRADED"
out "no result is INVALID"
no_out "sound is "
printf '[global]\ndata=%s\nruns=1\ncalibrate=no\ndecode=none\njson=%s\n[first]\n[dropped]\ndrop-caches=yes\n' \
    "$tmp/recordio" "$tmp/caches.json" >"$tmp/caches.ini"
try 0 "$tmp/caches.ini"
caches=$(grep '"cache_before"' "$tmp/caches.json" | sort -u | wc -l)
if [ "$caches" -gt 1 ]; then out "first: cache "; else no_out "before its runs"; fi
# The command line overrides the file.
try 0 run --shuffle epoch "$tmp/good.ini" --dry-run
out "shuffle epoch"
no_out "shuffle none"

bad() {
    printf '%b' "$2" >"$tmp/bad.ini"
    try 2 "$tmp/bad.ini"
    err "$1"
    empty out
}
# A job file runs commands only if the command line allows it, whatever the file says.
cat >"$tmp/starts.ini" <<EOF
[global]
data=$tmp/recordio
runs=1
calibrate=no
decode=none
drop-caches
[a]
server_drop_cmd=touch $tmp/started
EOF
try 2 "$tmp/starts.ini"
err "starts.ini:8: server-drop-cmd runs a command: 'touch $tmp/started'"
err "--allow-commands"
try 2 "$tmp/starts.ini" --dry-run
try 2 "$tmp/starts.ini" --no-allow-commands
[ ! -e "$tmp/started" ] || fault "the program was started"
sed 's/server_drop_cmd/server_check_cmd/' "$tmp/starts.ini" >"$tmp/checks.ini"
try 2 "$tmp/checks.ini"
err "checks.ini:8: server-check-cmd runs a command: 'touch $tmp/started'"
[ ! -e "$tmp/started" ] || fault "the program was started"
bad "bad.ini:4: server-drop-cmd runs a command" "[a]\ncommand=checkpoint\nfolder=$tmp/saved\nserver-drop-cmd=touch $tmp/started\n"
[ ! -e "$tmp/started" ] || fault "the program was started"
"$IOBENCH" run "$tmp/starts.ini" --allow-commands >"$tmp/out" 2>"$tmp/err" || : # 1: something keeps caches warm
[ -e "$tmp/started" ] || fault "the program was not started"
rm -f "$tmp/started"
sed -i '/server_drop_cmd/d' "$tmp/starts.ini"
"$IOBENCH" run "$tmp/starts.ini" --server-drop-cmd "touch $tmp/started" >"$tmp/out" 2>"$tmp/err" || :
[ -e "$tmp/started" ] || fault "the command line may not start a program"

# All jobs are checked before the first one runs.
bad "rank" "[a]\ndata=$tmp/recordio\n[b]\ndata=$tmp/recordio\nrank=5\n"
finish
