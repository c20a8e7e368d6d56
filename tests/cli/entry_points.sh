#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run and train --entry-points: the first epoch makes the file that verify --entry-points makes, tells what that took, and
# changes no pixel; files that are better, and other data, are left alone.
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"

poke() { # FILE OFFSET BYTES
    # shellcheck disable=SC2059 # escapes
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
runs() { # STATUS SET OPTIONS...: one run, as text and JSON
    wanted=$1 set=$2
    shift 2
    expect "$wanted" "$IOBENCH" run --data "$set" --decode jpeg:engine=own,scale=none --runs 1 --batch-size 8 \
        --no-calibrate --sample-interval none --json=run.json "$@"
}
value() { # KEY [FILE]: of the first job
    python3 -c "import json, sys
at = json.load(open('${2-run.json}'))['jobs'][0]
for key in '$1'.split('.'): at = at[int(key) if key.isdigit() else key]
print(at)"
}
fresh() { # without a file
    rm -f set/.iobench-hints
}
same() {
    cmp "$1" set/.iobench-hints || die "$2: not the file that verify makes"
}

expect 0 "$IOBENCH" pack synthetic:count=48,mean=20k,classes=3 set -f recordio --shards 2
expect 0 "$IOBENCH" verify --entry-points set
cp set/.iobench-hints reference

# ---- the same file, whatever decodes, and true figures ----
for threads in 1 2 3; do
    fresh
    runs 0 set --entry-points --epochs 2 --decode-threads $threads --digest
    same reference "$threads decode threads"
    says "1 run of 2 epochs, the first of which made entry points" "on entry points" \
        "Points of 48 images noted in the first epoch" "of 48 images in set/.iobench-hints"
    digest=$(value runs.0.epochs.1.digest)
    [ "$(value runs.0.epochs.0.digest)" = "$digest" ] || die "digests differ"
    python3 - $threads <<'END' || die "figures"
import json, sys
job = json.load(open("run.json"))["jobs"][0]
made, (first, later) = job["entry_points"], job["runs"][0]["epochs"]
assert (made["records"], made["images"], made["file_images"], made["file"]) == (48, 48, 48, "set/.iobench-hints"), made
waits = first["waits"]
assert waits["decode_entry_points_s"] == made["decode_threads_s"] > 0, (waits, made)
assert later["waits"]["decode_entry_points_s"] == 0, later
parts = sum(waits["decode_" + part + "_s"] for part in ("for_records", "for_batch", "busy", "entry_points"))
assert abs(parts - int(sys.argv[1]) * first["wall_s"]) < 1e-6, (parts, first["wall_s"])
assert made["write_s"] > 0
# The first epoch had none to use, the second has.
assert 10 < job["runs"][0]["decoded"]["entered_images"] <= 48, job["runs"][0]["decoded"]
END
done
fresh
runs 0 set --entry-points --epochs 2 --overlap-epochs --reader mmap
same reference "overlapping epochs"
[ "$(value runs.0.epochs.1.waits.decode_entry_points_s)" = 0.0 ] || die "made in the second epoch"
[ "$(value runs.0.decoded.entered_images)" = 0 ] || die "hints changed while decode threads work"
fresh
runs 0 set --epochs 2
[ -e set/.iobench-hints ] && die "made without being asked"
[ "$(value entry_points)$(value runs.0.epochs.0.waits.decode_entry_points_s)" = None0.0 ] || die "figures of nothing"
# Only the first of several runs.
expect 0 "$IOBENCH" run --data set --runs 2 --entry-points --json=two.json
[ "$(value runs.1.epochs.0.waits.decode_entry_points_s two.json)" = 0.0 ] || die "made twice"
expect 0 "$IOBENCH" compare two.json run.json
says "A made entry points, which slows the first epoch"

# ---- records that are not drawn keep what they have ----
fresh
runs 0 set --entry-points --limit-samples 8
[ "$(value entry_points.file_images)" = 8 ] || die "not those that were drawn"
runs 0 set --entry-points --limit-samples 16 --seed 2
count=$(value entry_points.file_images)
[ "$(value entry_points.images)" = $((count - 8)) ] || die "those that were there were made again"
{ [ "$count" -gt 16 ] && [ "$count" -le 24 ]; } || die "not added: $count"
cp reference set/.iobench-hints
runs 0 set --entry-points --limit-samples 8
same reference "8 more"

# ---- points that are there are used, and left alone, unless they are stale ----
inode=$(stat -c %i set/.iobench-hints)
runs 0 set --entry-points
says "entry points of all images drawn existed: none were made"
same reference "nothing to add"
[ "$inode" = "$(stat -c %i set/.iobench-hints)" ] || die "written again"
[ "$(value entry_points)$(value runs.0.epochs.0.waits.decode_entry_points_s)" = None0.0 ] || die "made again"
[ "$(value runs.0.decoded.entered_images)" -gt 10 ] || die "not used in the first epoch"
# A sound file, with a wrong DC predictor in the first point of each image.
python3 - set/.iobench-hints <<'END'
import struct, sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff
raw = bytearray(open(sys.argv[1], "rb").read())
at = 48 + 48 * 2
for (length,) in struct.iter_unpack("<H", bytes(raw[48:at])):
    raw[at + 8] ^= length > 0
    at += length
raw[40:44] = struct.pack("<I", crc32c(raw[48 + 48 * 2:]))
raw[44:48] = struct.pack("<I", crc32c(raw[:44]))
open(sys.argv[1], "wb").write(raw)
END
runs 0 set --entry-points
count=$(value runs.0.decoded.stale_hints)
{ [ "$count" -gt 10 ] && [ "$(value entry_points.images)" = "$count" ]; } || die "stale: $count"
runs 0 set --limit-samples 48
[ "$(value runs.0.decoded.stale_hints)" = 0 ] || die "stale points were not made again"

# ---- files and data that others write meanwhile, after the index was loaded ----
fresh
runs 0 set --entry-points --limit-samples 8 --drop-caches --server-drop-cmd 'cp reference set/.iobench-hints'
same reference "a better file was replaced"

# ---- damaged records ----
fresh
cp -r set damaged
where=$("$IOBENCH" inspect --show 8 damaged | sed -n 's/^record 3 .* at \([0-9]*\):.*/\1/p')
shard=$(echo damaged/*-00000-of-*.rec)
poke "$shard" $((where + 32)) 'ZZZZ'
runs 1 damaged --entry-points --on-error skip
[ "$(value entry_points.records)" = 47 ] || die "looked at what was not decoded"
cp damaged/.iobench-hints hints
rm damaged/.iobench-hints
expect 1 "$IOBENCH" verify --decode --entry-points damaged
cmp hints damaged/.iobench-hints || die "damaged: not the file that verify makes"
# Messages have the names of images, which tar keeps where private copies are made.
expect 0 "$IOBENCH" pack synthetic:count=2,mean=20k tar -f tar
name=$(tar -tf tar/*.tar | sed -n '2s/^\([^.]*\)\..*/\1/p')
offset=$(grep -abo "$name\.jp" tar/*.tar | head -1 | cut -d: -f1)
poke "$(echo tar/*.tar)" $((offset + 512)) 'ZZZZ'
runs 1 tar --entry-points --on-error skip
says "$name.jp"

# ---- where it cannot be written ----
fresh
mkdir -p set/.iobench-hints/full
runs 0 set --entry-points
says "images in $T/cache/iobench/"
rm -rf "$T/cache"
touch "$T/cache"
runs 0 set --entry-points --epochs 2
says "entry points were not kept: " "NOT written: "
[ "$(value entry_points.file)" = None ] || die "a file that is none"
rm -rf set/.iobench-hints "$T/cache"

# ---- memory ----
expect 0 "$IOBENCH" run --data set --dry-run --entry-points
says "37.59 KiB at most for entry points"
[ -e set/.iobench-hints ] && die "a dry run writes"

# ---- interrupted: what was made is kept ----
interrupted() { # COMMAND: run it once the shards are open, then interrupt; the job would take a minute
    "$IOBENCH" run --data set --entry-points --reader mmap --no-calibrate --runs 1 -B 1 --trainer replay:rate=1 \
        >/dev/null 2>err &
    pid=$!
    until grep -q 'set/.*-00000-of-' /proc/$pid/maps && grep -q 'set/.*-00001-of-' /proc/$pid/maps; do
        kill -0 $pid || die "ended"
        sleep 0.02
    done
    "$@"
    kill -INT $pid
    wait $pid && die "not interrupted"
    out=$(cat err)
}
interrupted true
says "interrupted; entry points of " " images are in set/.iobench-hints"
runs 0 set
echo "$out" | grep -q 'hints' && die "an interrupted job left a bad file"
# Data that were replaced meanwhile, as far as one can tell.
fresh
interrupted touch -d 2001-01-01 set/*-00000-of-*.rec
says "interrupted; entry points were not kept: set/" "changed since it was indexed"
[ -e set/.iobench-hints ] && die "hints of data that were replaced"

# ---- training: the same weights, the same file ----
trains() { # FILE OPTIONS...
    file=$1
    shift
    expect 0 "$IOBENCH" train --network lenet --size 32 --classes 3 --data set --batch-size 8 --epochs 2 --decode-threads 1 \
        --compute-threads 1 --eval-data set --json="$file" "$@"
}
fresh
trains without.json
trains with.json --entry-points
same reference training
says "made entry points"
python3 - <<'END' || die "entry points changed a training"
import json
a, b = (json.load(open(name + ".json")) for name in ("without", "with"))
def curve(document):
    return [(epoch["loss"], epoch["evaluation_loss"]) for epoch in document["epochs"]]
assert len(curve(a)) == 2 and curve(a) == curve(b), (curve(a), curve(b))
END

# ---- ranks ----
if with_mpi; then
    fresh
    expect 0 "$MPIRUN" -n 2 "$IOBENCH" run --data set --decode jpeg:engine=own,scale=none --entry-points --runs 1 --epochs 2 \
        --no-calibrate --json=run.json
    same reference "two ranks"
    [ "$(value entry_points.images)" = 48 ] || die "images of the ranks"
    [ "$(value runs.0.decoded.entered_images)" -gt 10 ] || die "the ranks do not use them"
fi
exit 0
