#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench checkpoint: written data is read back, cold and verified; after any failure complete
# checkpoints stay readable and foreign files are untouched.
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes MOUNTS=yes
. "$(dirname "$0")/cli.sh"

left() { # FOLDER: its names
    find "$1" -mindepth 1 -maxdepth 1 | sed 's|.*/||' | sort | tr '\n' ' '
}
value() { # FILE PATH: of a JSON document
    python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[int(key) if key.isdigit() else key]
print(value)' "$1" "$2"
}
until_there() { # COMMAND...: wait until it succeeds, 120 s at most
    for _ in $(seq 2400); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    die "in vain: $*"
}
checkpoint() { # STATUS OPTION...: a small one
    status=$1
    shift
    expect "$status" "$IOBENCH" checkpoint --bytes 8m --chunk 64k "$@"
}

# ---- written, read back, and gone ----
checkpoint 0 dir --writes 3 --reads 2 --json result.json
says "checkpoint: valid, cold, 3 written, 2 read" "16 files" "MLPerf Storage v3.0" "CRC-32C verified" "SCALED to 1/13"
[ -z "$(left dir)" ] || die "left behind: $(left dir)"
[ "$(value result.json schema)" = iobench-checkpoint ] || die "no schema"
[ "$(value result.json valid)" = True ] || die "not valid in JSON"
# Every rank wrote its share, as a second witness confirms.
[ "$(value result.json writes.2.bytes)" = "$(value result.json model.bytes)" ] || die "bytes written"
[ "$(value result.json reads.1.bytes)" = "$(value result.json model.bytes)" ] || die "bytes read"
python3 - <<'CHECK' || die "figures contradict each other"
import json
result = json.load(open("result.json"))
assert sum(rank["written_bytes"] for rank in result["ranks"]) == 3 * result["model"]["bytes"]
assert sum(rank["read_bytes"] for rank in result["ranks"]) == 2 * result["model"]["bytes"]
for row in result["writes"] + result["reads"]:
    assert row["fastest_rank_s"] <= row["median_rank_s"] <= row["wall_s"]
    assert abs(row["bytes"] / row["wall_s"] / row["bytes_per_s"] - 1) < 1e-6
for row in result["writes"]:
    assert row["wall_s"] <= row["durable_s"] <= row["stall_s"]
    wrote = row["device_write_bytes"]  # null: the devices cannot be seen
    assert row["durability"] == ("durable" if wrote is not None and wrote >= row["bytes"] else "unverified"), row
assert [row["number"] for row in result["reads"]] == [3, 2]
CHECK

echo '{"thesis": 1}' >thesis.json
checkpoint 2 dir --writes 1 --reads 0 --json thesis.json
says "thesis.json" "not replaced"
[ "$(cat thesis.json)" = '{"thesis": 1}' ] || die "a file of the user is gone"

# A checkpoint whose manifest no restore would load is not begun: 471 MB of checksums.
mkdir none
expect 1 "$IOBENCH" checkpoint none --bytes 200g --chunk 4k --writes 1 --reads 0
says "--chunk 4.00 KiB" "choose larger ones"
rmdir none || die "left behind: $(left none)"

# ---- kept, restored by another call, damaged ----
checkpoint 0 dir --writes 3 --reads 0 --keep 2 --leave --json result.json
[ "$(left dir)" = "checkpoint-000002 checkpoint-000003 " ] || die "kept: $(left dir)"
expect 0 "$IOBENCH" checkpoint dir --writes 0 --reads 2 --rank-shift 3
says "valid" "0 written, 2 read"
file=dir/checkpoint-000003/optimizer-000005.bin
cp "$file" whole
python3 -c 'import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(70000)
    byte = file.read(1)[0]
    file.seek(70000)
    file.write(bytes([byte ^ 4]))' "$file"
expect 1 "$IOBENCH" checkpoint dir --writes 0 --reads 1
says "INVALID" "content differs from what was written" "optimizer-000005.bin: offset 65536"
cp whole "$file"
expect 0 "$IOBENCH" checkpoint dir --writes 0 --reads 1
truncate -s -4096 "$file"
expect 1 "$IOBENCH" checkpoint dir --writes 0 --reads 1
says "optimizer-000005.bin" "its manifest says"
cp whole "$file"

# What a job left that was killed before it pruned is removed before the next one writes.
checkpoint 0 surplus --writes 3 --reads 0 --keep 3 --leave
"$IOBENCH" checkpoint surplus --bytes 8m --chunk 64k --step-time 1h --writes 1 --reads 0 --keep 1 --leave >log 2>&1 &
pid=$!
# shellcheck disable=SC2016 # the inner shell expands it
until_there sh -c '[ "$(ls surplus)" = checkpoint-000003 ]'
kill -KILL $pid
wait $pid && status=0 || status=$?
[ "$status" = 137 ] || die "exit status $status, not 137: $(cat log)"

# A restore from memory does not count as one from storage.
if python3 -c 'import mmap' 2>/dev/null; then
    hold_mapped 'dir/checkpoint-000003/*.bin'
    expect 1 "$IOBENCH" checkpoint dir --writes 0 --reads 1
    says "INVALID" "should be cold"
    release_held
    expect 0 "$IOBENCH" checkpoint dir --writes 0 --reads 1 --no-drop-caches
fi

# ---- foreign files are untouched ----
mkdir dir/checkpoint-000007
echo mine >dir/checkpoint-000007/thesis
checkpoint 0 dir --writes 2 --reads 1 --keep 1 --leave
[ "$(echo dir/*)" = "dir/checkpoint-000007 dir/checkpoint-000009" ] || die "numbers: $(echo dir/*)"
[ "$(cat dir/checkpoint-000007/thesis)" = mine ] || die "a file of the user is gone"
rm -rf dir
checkpoint 0 dir --writes 1 --reads 0 --leave
echo mine >dir/checkpoint-000001/thesis
mkdir dir/.checkpoint-000002.partial
echo mine >dir/.checkpoint-000002.partial/thesis
checkpoint 1 dir --writes 1 --reads 0
says "dir/.checkpoint-000002.partial/thesis: " "not made by this program"
[ "$(cat dir/.checkpoint-000002.partial/thesis)" = mine ] || die "a file of the user is gone"
rm -rf dir

# ---- what was not synced is not durable ----
checkpoint 0 dir --writes 1 --reads 0 --no-fsync
says "not durable: files were not synced"
if memory=$(mktemp -d /dev/shm/iobench-cli-XXXXXX 2>/dev/null); then
    checkpoint 0 "$memory" --writes 1 --reads 0 --json memory.json
    rm -rf "$memory"
    says "unverified, after" "no device beneath counts what it writes"
    [ "$(value memory.json write.durability)" = unverified ] || die "memory is durable: $(cat memory.json)"
    [ "$(value memory.json place.file_system) $(value memory.json place.mount_point)" = "tmpfs /dev/shm" ] ||
        die "where it lies, although nothing was read: $(cat memory.json)"
fi

# ---- shared file, blocking writes, without the page cache ----
checkpoint 0 dir --layout single --writer pwrite --reader pread --ranks 3 --writes 2 --reads 2
says "valid" "in one" "pwrite" "3 ranks"
checkpoint 0 dir --layout single --leave --writes 1 --reads 0
[ "$(ls dir/checkpoint-000001)" = "manifest
state.bin" ] || die "files of a single layout: $(ls dir/checkpoint-000001)"
rm -rf dir
checkpoint 0 dir --model gpt,params=20m --scale 1/10 --subset 2 --writes 1 --reads 1
says "gpt: 0.02 G" "2 ranks written"
if "$IOBENCH" checkpoint dir --bytes 8m --chunk 64k --direct --writes 1 --reads 1 >log 2>&1; then
    grep -q O_DIRECT log || die "the page cache was not bypassed"
else
    grep -q "cannot bypass the page cache" log || die "--direct: $(cat log)" # tmpfs before Linux 6.6
    [ -z "$(left dir)" ] || die "left behind: $(left dir)"
fi

# ---- training: lost work ----
checkpoint 0 dir --step-time 20ms --interval 3 --writes 3 --reads 0 --json stop.json
says "9 steps of 20.0 ms: lost"
python3 - <<'CHECK' || die "time lost to training"
import json
result = json.load(open("stop.json"))
lost = result["training"]["lost_s"]
assert abs(result["training"]["loop_s"] - 9 * 0.02 - lost) < 1e-6
assert lost >= sum(row["stall_s"] for row in result["writes"])
CHECK
# A step is longer than any delay by a busy machine; the removal of old ones, which takes time, too, is left out.
checkpoint 0 dir --step-time 300ms --interval 3 --writes 2 --keep 2 --reads 1 --async --json async.json
says "valid" "asynchronous"
python3 - <<'CHECK' || die "an asynchronous checkpoint stalls training as long as it takes"
import json
for row in json.load(open("async.json"))["writes"]:
    assert row["stall_s"] < row["durable_s"]
CHECK
[ -z "$(left dir)" ] || die "left behind: $(left dir)"

# ---- usage ----
expect 1 "$IOBENCH" checkpoint empty --writes 0
says "empty: cannot open the folder"
mkdir empty
expect 1 "$IOBENCH" checkpoint empty --writes 0
says "no complete checkpoint"

# ---- interrupted ----
"$IOBENCH" checkpoint dir --bytes 8m --chunk 64k --writes 100000 --reads 0 >log 2>&1 &
pid=$!
until_there sh -c "ls dir/checkpoint-*"
kill -INT $pid
wait $pid && status=0 || status=$?
[ "$status" = 1 ] || die "exit status $status, not 1: $(cat log)"
grep -q interrupted log || die "does not say that it was interrupted: $(cat log)"
[ -z "$(left dir)" ] || die "left behind: $(left dir)"

# ---- ranks ----
if with_mpi; then
    expect 0 "$MPIRUN" -n 3 "$IOBENCH" checkpoint dir --bytes 8m --chunk 64k --writes 2 --reads 2 --rank-shift 3 --json ranks.json
    says "valid" "3 processes on 1 nodes"
    [ "$(value ranks.json writes.1.bytes)" = "$(value ranks.json model.bytes)" ] || die "bytes of the ranks"
    expect 0 "$MPIRUN" -n 2 "$IOBENCH" checkpoint dir --bytes 8m --chunk 64k --writes 2 --reads 1 --step-time 10ms --interval 40 --async
    says "valid"
    expect 1 "$MPIRUN" -n 3 "$IOBENCH" checkpoint dir --bytes 8m --ranks 2 --writes 1 --reads 0
    says "at most one per rank"
    [ -z "$(left dir)" ] || die "left behind: $(left dir)"
fi

# ---- no space from the start: not even a folder is made ----
expect 1 "$IOBENCH" checkpoint new/folder --bytes 100000t
says "new/folder: needs" "free" "--scale"
[ ! -e new ] || die "a folder was left: $(find new)"

# ---- a full disk ----
mkdir full
mount -t tmpfs -o size=20m,nr_inodes=30 tmpfs full 2>/dev/null || exit 0
expect 1 "$IOBENCH" checkpoint full --model 8b
says "needs" "GiB" "only" "free" "--scale"
[ -z "$(left full)" ] || die "something was written: $(left full)"
checkpoint 1 full --writes 3 --reads 0 --keep 2 --bytes 6m # no more names
says "full/.checkpoint-000002.partial" "No space left on device"
[ -z "$(left full)" ] || die "left behind: $(left full)"
checkpoint 1 full --writes 3 --reads 0 --keep 2 --bytes 6m --leave
[ "$(left full)" = "checkpoint-000001 " ] || die "the last good one is gone: $(left full)"
expect 0 "$IOBENCH" checkpoint full --writes 0 --reads 1 --no-drop-caches
says "valid" "1 read"
# One that is refused for lack of space has pruned nothing.
rm -rf full/checkpoint-*
checkpoint 0 full --layout single --writes 2 --reads 0 --keep 2 --bytes 1m --leave
kept=$(left full)
expect 1 "$IOBENCH" checkpoint full --model 8b --keep 1
says "needs" "GiB"
[ "$(left full)" = "$kept" ] || die "a refused job removed some of $kept: $(left full)"
exit 0
