#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compromised parser changes only outputs and caches and opens no device; and commands still work,
# however the paths are named.
# shellcheck disable=SC2034,SC2154 # out is set by cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"

mkdir -m 700 house out probe
echo secret >house/secret
cp "$(command -v id)" house/program
HOME=$T/house
export HOME
# A sanitizer build needs its own library first; the probe needs none.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS

"$IOBENCH" pack synthetic:count=40,classes=4,mean=4000 set -f files >log 2>&1 || die "$(cat log)"
"$IOBENCH" pack set rec -f recordio --shards 2 >log 2>&1 || die "$(cat log)"
"$IOBENCH" run --data rec --runs 1 --no-calibrate --json out/r.json >log 2>&1 || die "$(cat log)"
"$IOBENCH" inspect --sandbox yes rec >log 2>&1 || skip "no Landlock here: $(cat log)"
abi=$("$IOBENCH" doctor | sed -n 's/.*Landlock ABI \([0-9]*\).*/\1/p')
[ -n "$abi" ] || die "doctor does not mention Landlock"

# ---- what a compromised parser can do ----

CC=${CC:-cc}
command -v "${CC%% *}" >/dev/null || skip "no compiler for the probe"
# shellcheck disable=SC2086 # CC has words
$CC -O1 -shared -fPIC "-I$SRCDIR" "$SRCDIR/tests/cli/sandbox_probe.c" -o probe/probe.so 2>log ||
    die "the probe cannot be compiled: $(cat log)"

# A device that opens without the sandbox.
DEVICE=
for name in kmsg mem loop-control fuse net/tun vda sda; do
    [ -n "$DEVICE" ] || { [ -c /dev/$name ] || [ -b /dev/$name ]; } && (: </dev/$name) 2>log && DEVICE=/dev/$name
done

# attacked AT COMMAND...: the program is taken over when it opens AT.
attacked() {
    at=$1
    shift
    PROBE_AT=$at PROBE_SECRET=$T/house/secret PROBE_HOME=$T/house PROBE_DEVICE=$DEVICE LD_PRELOAD=$T/probe/probe.so \
        expect 0 "$IOBENCH" "$@" --sandbox=yes
    [ -z "$DEVICE" ] || says "probe: read a device: Permission denied" "probe: read a device in a ring: "
    says "probe: write to a secret: Permission denied" "probe: run a program: Permission denied" \
        "probe: remove a secret: Permission denied" "probe: make a file: Permission denied" \
        "probe: make a folder: Permission denied" "probe: make a link: Permission denied"
    [ "$abi" -lt 3 ] || says "probe: cut a secret: Permission denied"
    [ "$abi" -lt 4 ] || says "probe: connect: Permission denied"
    [ "$abi" -lt 6 ] || says "probe: send a signal: Operation not permitted"
    case $out in
    *"in a ring: done"*) die "a ring reads what open() may not: $*" ;;
    esac
    [ "$(cat house/secret)" = secret ] || die "the secret was changed: $*"
    [ ! -e house/planted ] || die "a file was planted: $*"
}

attacked .rec run --data rec --runs 1 --no-calibrate --json out/r.json
attacked .rec inspect rec
attacked .rec inspect rec --json=/dev/stdout
attacked .rec verify rec
attacked .rec pack rec out/tar -f tar
attacked .rec shuffle --data rec epoch
again out/r.json out/again.json # not confined
attacked r.json compare out/r.json out/again.json
attacked r.json size out/r.json
attacked .rec train --data rec --network tiny --batch-size 8 --checkpoint out/learnt
attacked .checkpoint infer --data rec --network tiny --batch-size 8 --checkpoint out/learnt
attacked r.json plot out/r.json -o out/p.svg

# older ABI COMMAND...: on a kernel with that ABI, which restricts less; ABI 1 cannot move files
# between folders.
older() {
    PROBE_ABI=$1
    shift
    LD_PRELOAD=$T/probe/probe.so PROBE_ABI=$PROBE_ABI expect 0 "$IOBENCH" "$@"
}
for version in 1 2 3 4 5; do
    [ $version -le "$abi" ] || break
    older $version run --data rec --runs 1 --no-calibrate --json - --sandbox yes
    says "landlock ABI $version"
    for format in $(formats); do
        [ $version = 1 ] || older $version pack rec out/abi -f "$format" --sandbox yes
        rm -rf out/abi
        older $version pack rec out/abi -f "$format"
        rm -rf out/abi
    done
    older $version inspect rec --sandbox yes --json=out/i.json
    older $version train --data rec --network tiny --batch-size 8 --limit-samples 8 --compute-threads 1 \
        --checkpoint out/abi$version --sandbox yes
done
LD_PRELOAD=$T/probe/probe.so PROBE_ABI=1 expect 1 "$IOBENCH" pack rec out/abi --sandbox yes
says "between folders"
older 0 run --data rec --runs 1 --no-calibrate --json -
says '"sandbox": "none"'
LD_PRELOAD=$T/probe/probe.so PROBE_ABI=0 expect 1 "$IOBENCH" inspect rec --sandbox yes
says "no Landlock"

# Without the sandbox the probe succeeds: the test is real.
PROBE_AT=.rec PROBE_SECRET=$T/house/secret PROBE_HOME=$T/house PROBE_DEVICE=$DEVICE LD_PRELOAD=$T/probe/probe.so \
    expect 0 "$IOBENCH" inspect rec --sandbox no
says "probe: write to a secret: done" "probe: make a file: done" "probe: run a program: done"
[ -z "$DEVICE" ] || says "probe: read a device: done"
rm -f house/planted
echo secret >house/secret

# ---- must still work ----

sealed() { # COMMAND...
    expect 0 "$IOBENCH" "$@" --sandbox=yes
}

# Links that lead outside: an image of a folder, a named file, and a snapshot of a Hugging Face hub.
mkdir -p house/hub/blobs house/hub/snapshots/main
image=$(find set -name '*.jpg' | head -n 1)
mv "$image" house/hub/blobs/picture
ln -s "$T/house/hub/blobs/picture" "$image"
rm -f set/.iobench-index
for shard in rec/*.rec; do
    cp "$shard" "house/hub/blobs/$(basename "$shard" .rec)"
    ln -s "../../blobs/$(basename "$shard" .rec)" "house/hub/snapshots/main/$(basename "$shard")"
done
ln -s house/hub/blobs/"$(basename "$shard" .rec)" one.rec
for reader in uring pread; do
    "$IOBENCH" list reader | grep -q "^ *$reader " || continue
    sealed run --data set -f files -r $reader --runs 1 --no-calibrate
    for linked in one.rec house/hub/snapshots/main; do
        sealed run --data $linked -r $reader --runs 1 --no-calibrate
    done
done
sealed pack house/hub/snapshots/main out/hub -f tar
same_digest rec out/hub

# Via relative paths, .., links, into a new file here, onto an existing target.
mkdir -p out/deep
ln -s "$T/rec" out/link
(cd out/deep && sealed run --data ../../rec --runs 1 --no-calibrate --json r.json) || exit 1
grep -q '"sandbox": "landlock ABI' out/deep/r.json || die "the result does not record the sandbox"
sealed run --data out/link --runs 1 --no-calibrate --csv out/r.csv --series out/s.csv
sealed run --data out/link/ --runs 1 --no-calibrate --json - # standard output
"$IOBENCH" run --data rec --runs 1 --no-calibrate --sandbox yes >out/table || die "no table"
grep -q Median out/table || die "the table is not whole"
"$IOBENCH" inspect rec --sandbox yes --json=/dev/stdout | grep -q '"records": 40' ||
    die "/dev/stdout cannot be written"
sealed pack rec out/new/place/set -f shards
rm -r out/new/place/set
sealed pack rec out/new/place/set -f files
same_digest rec out/new/place/set
# What is made in / from now on has no rule of its own.
if [ -w / ]; then
    top=/iobench-test-$$
    "$IOBENCH" pack rec $top/set -f shards --entry-points --sandbox=yes >log 2>&1 &&
        "$IOBENCH" run --data $top/set --runs 1 --no-calibrate --json $top.json --sandbox=yes >>log 2>&1 &&
        "$IOBENCH" inspect $top/set --sandbox=yes >>log 2>&1
    code=$?
    rm -rf $top $top.json
    [ $code = 0 ] || die "outputs in /: $(cat log)"
fi
sealed run --data "$(find rec -name '*.rec' | head -n 1)" --runs 1 --no-calibrate
cat >job.ini <<END
[a]
data=$T/rec
runs=1
json=out/job.json
END
sealed run job.ini
[ -s out/job.json ] || die "no result of a job file"
# Work for the helper outside the sandbox: a user command, and finding the processes that map a
# file.
if [ "$(id -u)" = 0 ] && [ -w /proc/sys/vm/drop_caches ]; then
    sealed run --data rec --runs 2 --drop-caches --no-calibrate \
        --server-drop-cmd "cat '$T/house/secret' >'$T/house/copied'; echo asked"
    [ "$(cat house/copied)" = secret ] || die "the server drop command was confined"
    rm -f house/copied
    expect 0 "$IOBENCH" run --data rec --runs 1 --drop-caches --no-calibrate --sandbox yes \
        --server-drop-cmd "echo no server; exit 3"
    says "status 3" "no server"
    # Without a folder for caches, too, the page cache may be dropped.
    expect 0 env -u HOME -u XDG_CACHE_HOME "$IOBENCH" run --data rec --runs 1 --drop-caches --no-calibrate \
        --memory 16m --sandbox yes
    case $out in
    *"metadata warm"*) die "the page cache could not be dropped: $out" ;;
    esac
    hold_mapped 'rec/*.rec'
    expect 1 "$IOBENCH" run --data rec --runs 1 --drop-caches --no-calibrate --sandbox yes
    says "INVALID: " "mapped by process $HOLDER (python3)"
    release_held
fi

# For other users the sandbox is off by default, and available.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$T"
    mkdir -m 777 cache/other
    if setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$IOBENCH"; then
        out=$(XDG_CACHE_HOME=$T/cache/other setpriv --reuid 65534 --regid 65534 --clear-groups \
            "$IOBENCH" run --data rec --runs 1 --no-calibrate --json - 2>&1)
        says '"sandbox": "none"'
        out=$(XDG_CACHE_HOME=$T/cache/other setpriv --reuid 65534 --regid 65534 --clear-groups \
            "$IOBENCH" run --data rec --runs 1 --no-calibrate --json - --sandbox yes 2>&1)
        says '"sandbox": "landlock'
    fi
fi
# The program refuses to run set-user-ID, where that bit has an effect.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$T" probe
    cp "$(command -v id)" "$IOBENCH" probe
    chmod 4755 probe/id probe/iobench
    if [ "$(setpriv --reuid 65534 --clear-groups probe/id -u)" = 0 ]; then
        expect 2 setpriv --reuid 65534 --clear-groups probe/iobench inspect rec
        says "must not be set-uid"
    fi
fi
if [ "$(id -u)" = 0 ]; then
    expect 0 "$IOBENCH" run --data rec --runs 1 --no-calibrate --json -
    says '"sandbox": "landlock'
fi
echo "ok: ABI $abi"
