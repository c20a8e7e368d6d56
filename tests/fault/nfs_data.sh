#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data sets on nfs:// URLs, without a mount, against a real server: pack, verify, inspect and run
# give the same results as with local files. A server that restarts or stays down, or a file
# truncated or replaced before its turn, leads to recovery or one error message, never to a hang.
# shellcheck source=tests/fault/server.sh
. "$(dirname "$0")/server.sh"
HELD=$tmp/held
# shellcheck source=tests/cli/hold.sh
. "$(dirname "$0")/../cli/hold.sh"

there=$tmp/export
url=nfs://$address$there
here=$tmp/here
mkdir "$here"

# must TEXT COMMAND: the command succeeds.
must() {
    what=$1
    shift
    timeout 600 "$@" >"$tmp/out" 2>&1 || fault "$what"
}
# refuses TEXT COMMAND: the command fails soon, with TEXT in one line.
refuses() {
    what=$1
    shift
    timeout 600 "$@" >"$tmp/out" 2>&1
    status=$?
    if [ $status -eq 0 ] || [ $status -ge 124 ]; then fault "status $status, wanted: $what"; fi
    grep -q "$what" "$tmp/out" || fault "no word of: $what"
}
# digest DATA [OPTION...]: print the digest of all labels and images of an epoch.
digest() {
    data=$1
    shift
    timeout 600 ./iobench run --data "$data" --runs 1 --digest --decode checksum --calibrate=no "$@" >"$tmp/out" 2>&1 ||
        fault "run on $data"
    sed -n 's/^ *Digest *\([0-9a-f]*\).*/\1/p' "$tmp/out"
}
same() {
    [ "${1:-none}" = "$2" ] || fault "$3: digest $1, wanted $2"
}

# pack, verify, inspect: as locally, byte for byte.
must "pack here" ./iobench pack synthetic:count=160 "$here/rec" --format recordio --shards 3
must "pack" ./iobench pack synthetic:count=160 "$url/rec" --format recordio --shards 3
diff -r -x '.iobench-*' "$here/rec" "$there/rec" >"$tmp/out" 2>&1 || fault "other bytes were written"
must "verify" ./iobench verify "$url/rec"
grep -q '160 records' "$tmp/out" || fault "verify counts"
must "inspect" ./iobench inspect "$url/rec"
grep -q '^records *160' "$tmp/out" || fault "inspect counts"
must "shuffle" ./iobench shuffle --data "$url/rec" epoch

# Read in two sample orders, with both protocol versions: the same samples as locally.
wanted=$(digest "$here/rec")
same "$(digest "$url/rec")" "$wanted" "epoch"
grep -q '^ *Reader *libnfs, NFS 3' "$tmp/out" || fault "not read by libnfs"
grep -q 'valid, client cold, server unverified, ' "$tmp/out" || fault "silent on the server's cache"
same "$(digest "$url/rec" --shuffle tfdata)" "$wanted" "tfdata"
same "$(digest "nfs://$address/export/rec")" "$wanted" "NFS 4"
grep -q '^ *Reader *libnfs, NFS 4' "$tmp/out" || fault "not NFS 4"
[ -f "$there/rec/.iobench-index" ] || fault "the index was not kept"
# Cold means verified by the server: running a command there proves nothing, nor does its output on
# other files.
check="./cachectl/cachectl status --json $there/rec"
for proves_nothing in "drop-cmd true" "check-cmd true" "check-cmd ./cachectl/cachectl status --json $tmp/conf"; do
    refuses 'not verified cold: ' ./iobench run --data "$url/rec" --drop-caches=strict --runs 1 \
        --calibrate=no "--server-${proves_nothing%% *}" "${proves_nothing#* }"
done
if ./cachectl/cachectl drop; then
    same "$(digest "$url/rec" --drop-caches=strict --server-drop-cmd "./cachectl/cachectl drop" \
        --server-check-cmd "$check")" "$wanted" "server emptied"
    grep -q 'valid, cold, ' "$tmp/out" || fault "an empty server is not cold"
    grep -q 'Server *cold: 0 B of .* its disks read' "$tmp/out" || fault "silent on the server's disks"
    hold_mapped "$there/rec/*"
    refuses 'is in the server.s memory' ./iobench run --data "$url/rec" --drop-caches \
        --server-check-cmd "$check" --runs 1 --calibrate=no
    release_held
fi

# Conversion between formats, over the network in both directions.
for format in shards tar files; do
    must "pack as $format" ./iobench pack "$url/rec" "$url/$format" --format $format
    must "verify $format" ./iobench verify "$url/$format"
done
must "pack compressed" ./iobench pack "$url/files" "$url/gzip" --format shards:compression=gzip
must "pack LMDB" ./iobench pack "$url/tar" "$here/lmdb" --format lmdb
refuses 'is not empty' ./iobench pack "$url/rec" "$url/files" --format files
cp -r "$here/lmdb" "$there/lmdb"
for format in shards tar files lmdb; do
    same "$(digest "$url/$format")" "$wanted" $format
done
same "$(digest "$url/gzip" --shuffle none)" "$wanted" gzip
refuses 'pack into a local folder' ./iobench pack "$url/rec" "$url/lmdb2" --format lmdb
refuses 'is not empty' ./iobench pack "$url/rec" "$url/tar" --format tar
refuses 'source and target are the same' ./iobench pack "$url/rec" "$url/rec"
refuses 'does not exist' ./iobench run --data "$url/none"
refuses 'use --reader nfs, or mount it' ./iobench run --data "$url/rec" --reader pread
refuses 'URL options' ./iobench verify "$url/rec?version=4"

# A shard that is truncated, or replaced, after the data set was found and before the shard is opened: the command
# that empties the server's cache does it.
bytes=$(du -sb "$here/rec" | cut -f1)
cat >"$tmp/hurt" <<'END'
#!/bin/sh
case $1 in
cut) truncate -s 100000 "$2/train-00002-of-00003.rec" ;;
replaced) cp "$2/train-00001-of-00003.rec" "$2/new" && mv "$2/new" "$2/train-00002-of-00003.rec" ;;
esac
END
chmod +x "$tmp/hurt"
for fault_kind in cut replaced; do
    hurt=hurt-$fault_kind # the server may cache a name for a long time
    cp -rp "$there/rec" "$there/$hurt"
    refuses 'train-00002-of-00003.rec: offset [0-9]*: the file' ./iobench run --data "$url/$hurt" --shuffle none \
        --runs 1 --calibrate=no --drop-caches --server-drop-cmd "$tmp/hurt $fault_kind $there/$hurt"
done

# Down for a second: reconnects.
(
    sent 1000000
    ip link set ib0-$$ down
    sleep 1
    ip link set ib0-$$ up
) &
same "$(digest "$url/rec" --limit-rate $((bytes / 2))B --memory 8m)" "$wanted" "the wire was cut"
timeout 600 ./iobench run --data "$url/rec" --runs 1 --digest --decode checksum --calibrate=no --memory 8m \
    --limit-rate $((bytes / 2))B >"$tmp/run" 2>&1 &
run=$!
sent 1000000
stop
start
wait $run || { cp "$tmp/run" "$tmp/out"; fault "a server that came back ends the run"; }
same "$(sed -n 's/^ *Digest *\([0-9a-f]*\).*/\1/p' "$tmp/run")" "$wanted" "server stopped and started"
# The server stops while a set is written: one error message, and the same command resumes.
timeout 600 ./iobench pack synthetic:count=600 "$url/long" --format recordio --shards 6 \
    -t 1 --io-timeout 1s >"$tmp/pack" 2>&1 &
pack=$!
while ! grep -qs '^done' "$there/long/.iobench-unfinished" && kill -0 $pack; do sleep 0.05; done
stop
wait $pack && { cp "$tmp/pack" "$tmp/out"; fault "pack without a server"; }
grep -q "nfs://.*: \(connection lost while\|no answer from the server\)\|cannot be reached" \
    "$tmp/pack" || { cp "$tmp/pack" "$tmp/out"; fault "no sentence of the pack"; }
start
must "pack goes on" ./iobench pack synthetic:count=600 "$url/long" --format recordio --shards 6
grep -q 'finished before' "$tmp/out" || fault "nothing was kept"
must "verify what went on" ./iobench verify "$url/long"
grep -q '600 records' "$tmp/out" || fault "not all records"

# Down for good, at the start and midway.
(sent 1000000; kill -9 $server) &
refuses 'no answer .*for 1.0 s\|cannot be reached' ./iobench run --data "$url/rec" --runs 1 --calibrate=no \
    --io-timeout 1s --limit-rate $((bytes / 2))B --memory 8m
server=
for command in "verify" "inspect" "run --data"; do
    # shellcheck disable=SC2086 # two words
    refuses 'cannot be reached' ./iobench $command "$url/rec" --io-timeout 1s
done
echo ok
