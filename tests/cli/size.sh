#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# iobench size --measure, an acceptance test that passes or fails by its figure, and profiles of runs; what is simulated is in
# tests/cli/pages.sh.
# shellcheck disable=SC2034 # for cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"

"$IOBENCH" size --simulate --gpus 64 --storage nfs-100g --json=forms.json || die "no JSON"
# The worked case in docs/sizing.md has the figures of its commands.
"$IOBENCH" size --simulate --gpus 512 --storage parallel-k3000,nvme-9550 --json=worked.json || die "no worked case"
python3 - "$SRCDIR/docs/sizing.md" <<'END' || die "docs/sizing.md has other figures"
import json, sys
text, cases = open(sys.argv[1]).read(), json.load(open("worked.json"))["cases"]
def row(title, show):
    line = f"| {title} | " + " | ".join(show(case) for case in cases) + " |"
    assert line in text, line
row("samples/s, 90% between",
    lambda c: "{:,} .. {:,}".format(*(1000 * round(c["samples_per_s"][end] / 1000) for end in ("low", "high"))))
row("GPUs busy", lambda c: f"{100 * c['samples_per_s']['median'] / c['goal_samples_per_s']:.0f}%")
row("gain from twice the storage",
    lambda c: f"{100 * next(u for u in c['upgrades'] if u['part'] == 'storage bandwidth')['gain']:.1f}%")
case, = json.load(open("forms.json"))["cases"]
for title, form in (("published (JPEG, 500 x 375)", None), ("JPEG, with entry points", 0),
                    ("JPEG, short side 256", 1), ("raw pixels, 224 x 224", 2)):
    rate = case["stated_samples_per_s"] if form is None else case["forms"][form]["samples_per_s"]
    assert any(line.startswith(f"| {title} |") and line.endswith(f"| {rate:,.0f} |") for line in text.splitlines()), title
END

"$IOBENCH" list profiles | grep -q "h200 .*H200: MLPerf" || die "no list of profiles"

# A measured storage: its curve has all sizes and depths, a rate each, and the simulation uses it.
head -c 1000000 /dev/urandom >file
# Where the file system reads through the page cache all the same, the program says so.
measure() {
    "$IOBENCH" size --measure "$@" --measure-time 1ms 2>told || grep -q "left storage" told || {
        cat told >&2
        return 1
    }
}
measure file --read-sizes 4k,64k,1m --depths 1,2,8 --save measured.ini >out || die "not measured"
grep -c "KiB  *[128]  *[0-9.,]*  *[0-9.,]*  *[0-9.]*%$" out >count
[ "$(cat count)" = 6 ] || die "not 2 sizes that fit the file x 3 depths: $(cat out)"
measure file --read-sizes 4k --depths 1 --save measured.ini >/dev/null || die "an older profile was not replaced"
mkdir -p tree/below && cp file tree/below && cp file tree/file
measure tree --read-sizes 4k,64k --depths 1,2,8 --save - >tree.ini || die "no folder"
grep -Eq '^curve-65536=1:[0-9.e+]+( \+-[0-9.e+]+%)?, 2:[0-9].*, 8:[0-9]' tree.ini || die "no curve: $(cat tree.ini)"
"$IOBENCH" size --simulate --draws 20 --gpus 8 --storage tree.ini >/dev/null || die "the curve is refused"
grep -q "of the bytes left storage (\|not known: " out || die "no witness: $(cat out)"
# A hole is on no storage, whatever the rate. Its file has data, too: a file of holes alone may be of any kind.
truncate -s 16M hole && dd if=file of=hole conv=notrunc bs=64k count=1 2>/dev/null
measure hole --read-sizes 64k --depths 2 --save hole.ini >out || die "no rate of a hole"
if grep -q "of the bytes left storage (" out; then
    grep -q "size: DEGRADED: only .*% of the bytes left storage" told || die "holes are a storage: $(cat out told)"
    grep -q "^source=.*DEGRADED: only " hole.ini || die "the profile does not say so: $(cat hole.ini)"
    grep -q "^doubt=DEGRADED: only " hole.ini || die "no doubt: $(cat hole.ini)"
fi
echo "# mine" >precious
! measure file --save precious >out 2>err || die "a foreign file was replaced"
[ "$(cat precious)" = "# mine" ] || die "a foreign file is gone"

# The goal in a job file decides.
"$IOBENCH" size --simulate --draws 20 --gpus 8 --acceptance=accept.ini || die "no acceptance test"
grep -q "^require-rate=" accept.ini || die "no goal"
"$IOBENCH" pack synthetic:count=200,mean=5000 set -f recordio >/dev/null || die "no data"
goal() {
    sed "s|^data=.*|data=set|; s|^drop-caches=.*|drop-caches=no|; s|^runs=.*|runs=1|
        s|^require-rate=.*|require-rate=$1|; s|^require-samples.*|require-samples-per-s=$2|" accept.ini >job.ini
    "$IOBENCH" run --no-calibrate job.ini >out 2>err
}
goal 1B/s 0.5 || die "a goal of nothing was missed: $(cat out err)"
! goal 1000TB/s 0.5 || die "a goal of 1,000 TB/s was reached"
grep -q -e "--require-rate: reached .* of the required 1e+15" err || die "$(cat err)"
! goal 1B/s 1e14 || die "a goal of 1e14 samples/s was reached"
grep -q -e "--require-samples-per-s: reached" err || die "$(cat err)"

# So do the fabric's and the checkpoints', as jobs of other commands in the same file and launch.
"$IOBENCH" size --simulate --draws 20 --gpus 64 --network llama3.1-70b --rate 1 --acceptance=whole.ini || die "no acceptance test"
smaller() { # WRITE-GOAL READ-GOAL ALL-REDUCE-GOAL: the file, for small ranks
    sed "s|^data=.*|data=set\ncalibrate=no|; s|^drop-caches=.*|drop-caches=no|; s|^runs=.*|runs=1\nmemory=16m|; s|^require-rate=.*|require-rate=1B/s|
        s|^require-samples.*|require-samples-per-s=1|; s|^folder=.*|folder=saved|; s|params=.*|params=100000|
        s|^rank-shift=.*|rank-shift=1|; s|^ranks=.*|ranks=2|; s|^writes=.*|writes=1|; s|^reads=.*|reads=1|
        s|^require-write-rate=.*|require-write-rate=$1|; s|^require-read-rate=.*|require-read-rate=$2|
        s|^from=.*|from=4096|; s|^to=.*|to=4096\nrepeats=1\nrepeat-time=1us|
        s|^require-nodes=.*|require-nodes=1|; s|^require-all-reduce=.*|require-all-reduce=$3|" whole.ini >small.ini
    cp small.ini ranks.ini
    sed '/^\[fabric\]/,/^$/d' small.ini >alone.ini
}
smaller 1B/s 1B/s 1B/s
"$IOBENCH" alone.ini >out 2>err || die "goals of nothing were missed: $(cat out err)"
grep -q "checkpoint: valid" out || die "no checkpoint was saved: $(cat out)"
"$IOBENCH" alone.ini --dry-run >out || die "no plan"
grep -q "^iobench checkpoint saved --model=job,params=100000 --ranks=2" out || die "its plan: $(cat out)"
[ -z "$(ls saved)" ] || die "a dry run wrote"
smaller 1000TB/s 1B/s 1B/s
! "$IOBENCH" alone.ini >out 2>err || die "a checkpoint was written at 1,000 TB/s"
grep -q -e "--require-write-rate: reached .* of the required 1e+15" err || die "$(cat err)"
smaller 1B/s 1000TB/s 1000TB/s
! "$IOBENCH" alone.ini >out 2>err || die "a checkpoint was read at 1,000 TB/s"
grep -q -e "--require-read-rate: reached .* of the required 1e+15" err || die "$(cat err)"
if with_mpi; then
    ! "$MPIRUN" -n 2 "$IOBENCH" ranks.ini >out 2>err || die "an all-reduce at 1,000 TB/s"
    grep -q -e "--require-all-reduce: reached .* of the required 1e+15" err || die "$(cat err)"
    grep -q "checkpoint: valid" out || die "a missed goal ended the file: $(cat out err)"
    smaller 1B/s 1B/s 1B/s
    "$MPIRUN" -n 2 "$IOBENCH" ranks.ini >out 2>err || die "goals of nothing were missed: $(cat out err)"
    grep -q "net: valid, 2 ranks" out || die "no fabric: $(cat out)"
    sed -i 's/^require-nodes=.*/require-nodes=9/' ranks.ini
    ! "$MPIRUN" -n 2 "$IOBENCH" ranks.ini >out 2>err || die "one node passed for nine"
    grep -q -e "--require-nodes: 1 of 9 nodes" err || die "$(cat err)"
fi
for wrong in "model=8b\nscale=2" "model=what" "async" "writes=0\nrequire-write-rate=1B/s"; do
    printf '[a]\ndata=set\n[b]\ncommand=checkpoint\nfolder=saved\n%b\n' "$wrong" >wrong.ini
    "$IOBENCH" wrong.ini >out 2>err && status=0 || status=$?
    [ "$status,$(cat out)" = "2," ] || die "jobs before a wrong checkpoint ran: $wrong: $(cat out err)"
    grep -q "wrong.ini:4: \[b\]: --" err || die "$(cat err)"
done

# A run saves its measurements as a profile, which size reads; foreign files are not replaced. What is stored in other forms
# than the network's own samples is not compared with them, and a storage that did not limit has no figure.
"$IOBENCH" run --no-calibrate --runs 2 --data set --profile own.ini >/dev/null || die "no profile"
! grep -q "^read-bytes-per-s" own.ini || grep -q "Storage was the bottleneck" own.ini || die "a storage that did not limit"
for key in sample-bytes samples=200 decode-core-s "source=measured by iobench"; do
    grep -q "^$key" own.ini || die "the profile lacks $key: $(cat own.ini)"
done
"$IOBENCH" run --no-calibrate --runs 1 --data set --profile own.ini >/dev/null || die "a profile was not replaced"
"$IOBENCH" size --simulate --draws 20 --gpus 8 --profile own.ini --json=own.json || die "the profile is refused"
python3 - <<'END' || die "the profile was read wrongly"
import json, re
inputs = json.load(open("own.json"))["cases"][0]["inputs"]
assert not json.load(open("own.json"))["cases"][0]["forms"]
for section, key in (("data", "sample-bytes"), ("cpu", "decode-core-s")):
    text = re.search(rf"^{key}=(\S+)", open("own.ini").read(), re.M)[1]
    assert inputs[f"{section} {key}"]["value"] == float(text) > 0
END
for output in "run --no-calibrate --runs 1 --data set --profile" "size --simulate --acceptance"; do
    echo "# mine" >precious
    # shellcheck disable=SC2086 # words
    ! "$IOBENCH" $output=precious >/dev/null 2>err || die "$output replaced a foreign file"
    [ "$(cat precious)" = "# mine" ] || die "$output: the file is gone"
done
