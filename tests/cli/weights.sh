#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weights in and out as safetensors: what is exported is what was trained, F16 and BF16 are read as the numbers
# they are, files of another network are refused by name, and no file is replaced.
. "$(dirname "$0")/cli.sh"

command -v jq >/dev/null || skip "jq is not installed"

expect 0 "$IOBENCH" pack synthetic:count=61,classes=3,mean=6k,seed=5 set
LENET="--network lenet --size 32 --classes 3 --data set --decode-threads 1 --compute-threads 1"
# shellcheck disable=SC2086 # words without blanks
train() { "$IOBENCH" train $LENET --batch-size 20 "$@"; }
# shellcheck disable=SC2086 # words without blanks
infer() { "$IOBENCH" infer $LENET --batch-size 8 --json infer.json "$@"; }
loss() { jq '.batch_sizes[0].loss' infer.json; }

expect 0 train --lr 0.001 --checkpoint learnt --export a.safetensors --json train.json
jq -e '.final_weights == "a.safetensors" and .initial_weights == null' train.json >/dev/null ||
    die "the result does not name the file: $(cat train.json)"
expect 0 infer --checkpoint learnt
right=$(loss)
expect 0 infer --init a.safetensors
[ -n "$right" ] || die "no loss"
[ "$(loss)" = "$right" ] || die "loss $(loss) with the exported weights, $right with the checkpoint"
jq -e '.checkpoint == "a.safetensors"' infer.json >/dev/null || die "the result does not name the weights"

# A step of rate 0 changes nothing: in and out again, bit for bit.
expect 0 train --init a.safetensors --lr 0 --weight-decay 0 --export b.safetensors --json again.json
says "training started from the weights in a.safetensors"
cmp a.safetensors b.safetensors || die "in and out again is another file"
jq -e '.initial_weights == "a.safetensors"' again.json >/dev/null || die "trained weights are not told"

# A residual network starts with gamma 0 in the last BN of each block, unless its weights come from a file.
RESNET="--network resnet110 --size 8 --classes 3 --data set --limit-samples 4 --batch-size 4 --decode-threads 1"
for from in "" "--init start.safetensors"; do
    # shellcheck disable=SC2086 # words without blanks
    expect 0 "$IOBENCH" train $RESNET --compute-threads 1 --epochs 1 --lr 0 --json start.json $from \
        --export "${from:+again-}start.safetensors"
    [ "$(jq .recipe.zero_gammas start.json)" = "$([ "$from" ] && echo 0 || echo 54)" ] ||
        die "${from:-fresh}: $(jq -c .recipe start.json)"
done
expect 0 python3 - <<'END'
import json, struct
data = open("start.safetensors", "rb").read()
length, = struct.unpack_from("<Q", data)
found = {}
for name, entry in json.loads(data[8:8 + length]).items():
    if ".bn" in name and name.endswith(".weight"):
        begin, end = (8 + length + at for at in entry["data_offsets"])
        found.setdefault(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])[0], []).append(name)
assert sorted(found) == [0, 1] and len(found[0]) == 54, {value: len(names) for value, names in found.items()}
assert all(".block" in name and ".bn2." in name for name in found[0]), found[0]
END

# ---- files of others, and damaged ones: made here from that one ----
cat >make.py <<'END'
import json, struct, sys
def load(path):
    data = open(path, "rb").read()
    length, = struct.unpack_from("<Q", data)
    return json.loads(data[8:8 + length]), data[8 + length:]
def save(path, header, data):
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
header, data = load("a.safetensors")
assert header.pop("__metadata__") == {"format": "pt"}
names = list(header)
assert header["conv1.weight"]["shape"][2:] == [5, 5] and header["conv1.bias"]["shape"] == header["conv1.weight"]["shape"][:1], header
at = 0
for name in names: # in order, without gaps, and the data is aligned
    size = 4
    for n in header[name]["shape"]: size *= n
    assert header[name]["dtype"] == "F32" and header[name]["data_offsets"] == [at, at + size], (name, header[name])
    at += size
assert at == len(data) and struct.unpack_from("<Q", open("a.safetensors", "rb").read())[0] % 8 == 0
count = at // 4
for kind in ("F16", "BF16"):
    if kind == "F16":
        halves = struct.pack(f"<{count}e", *struct.unpack(f"<{count}f", data))
        wide = struct.pack(f"<{count}f", *struct.unpack(f"<{count}e", halves))
    else:
        bits = [value >> 16 for value in struct.unpack(f"<{count}I", data)]
        halves = struct.pack(f"<{count}H", *bits)
        wide = struct.pack(f"<{count}I", *(value << 16 for value in bits))
    less = {n: {"dtype": kind, "shape": e["shape"], "data_offsets": [o // 2 for o in e["data_offsets"]]} for n, e in header.items()}
    save(kind, less, halves)
    save(kind + "-wide", header, wide)
first = names[0]
def changed(path, change, data=data):
    copy = json.loads(json.dumps(header))
    save(path, change(copy) or copy, data)
changed("counter", lambda h: h.update({"bn.num_batches_tracked": {"dtype": "I64", "shape": [], "data_offsets": [at, at + 8]}}), data + bytes(8))
changed("extra", lambda h: h.update({"head.weight": {"dtype": "F32", "shape": [1], "data_offsets": [at, at + 4]}}), data + bytes(4))
changed("renamed", lambda h: h.update({"module." + first: h.pop(first)}))
changed("reshaped", lambda h: h[first].update(shape=h[first]["shape"][::-1]))
changed("integers", lambda h: h[first].update(dtype="I32"))
changed("overlap", lambda h: h[names[1]].update(data_offsets=[o - 4 for o in h[names[1]]["data_offsets"]]))
changed("negative", lambda h: h[first].update(data_offsets=[-4, h[first]["data_offsets"][1] - 4]))
changed("huge", lambda h: h[first].update(shape=[1 << 62, 1 << 62]))
changed("cut", lambda h: None, data[:-4])
changed("longer", lambda h: None, data + bytes(4))
open("length", "wb").write(struct.pack("<Q", 1 << 60) + b"{}")
open("text", "wb").write(b"\x89PNG\r\n\x1a\n" + bytes(64))
open("twice", "wb").write(struct.pack("<Q", 20) + b'{"a": {}, "a": {}}  ')
END
expect 0 python3 make.py
for kind in F16 BF16; do
    expect 0 infer --init $kind-wide
    right=$(loss)
    expect 0 infer --init $kind
    [ "$(loss)" = "$right" ] || die "$kind is read as other numbers: loss $(loss), not $right"
done
expect 0 infer --init counter
refused() { # FILE TEXT...
    file=$1
    shift
    expect 1 infer --init "$file"
    says "$file: " "$@"
}
refused extra "tensor 'head.weight' is not one of lenet"
refused renamed "no tensor '" "which lenet has"
refused reshaped "but lenet needs"
refused integers "is I32: F32, F16 and BF16 can be read"
refused overlap "begins at"
refused negative "has no two data_offsets"
refused huge "too large"
refused cut "it is cut"
refused longer "what they are is not said"
refused length "its header would have 1152921504606846976 bytes"
refused text "not a safetensors file"
refused twice "not a safetensors file"
# shellcheck disable=SC2086 # words without blanks
expect 1 "$IOBENCH" infer --network lenet --size 32 --classes 4 --data set --init a.safetensors
says "but lenet needs" "see --network, --size and --classes"

# ---- before hours of work ----
expect 2 infer --init missing
says "missing does not exist"
expect 2 train --export nowhere/c.safetensors
[ ! -e nowhere ] || die "a folder was made"
left=$(find . -name '*.partial')
[ -z "$left" ] || die "a draft is left: $left"
