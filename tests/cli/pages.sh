#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Commands that measure nothing print the same on every machine: all of it is compared, text and JSON.
# UPDATE=1 rewrites tests/cli/saved/pages-*.txt; check the difference by hand.
# shellcheck disable=SC2154,SC2034 # tmp and tried are those of streams.sh
. "$(dirname "$0")/streams.sh"
COLUMNS=80
export COLUMNS
cp -R "$SRCDIR/tests/golden/tar" "$SRCDIR/tests/golden/recordio" "$SRCDIR/tests/golden/mds" "$SRCDIR/tests/golden/tfrecord" . &&
    chmod -R u+w .

# The figures of documents to four digits: the last ones are those of a processor.
rounded() {
    sed 's/"\(gain\|p\|p_corrected\)": -*[0-9.]*e-[0-9]*/"\1": 0/' pages | awk '{ while (/": / && match($0, /[0-9]+\.[0-9]+(e[-+][0-9]+)?/)) {
        printf "%s%.4g", substr($0, 1, RSTART - 1), substr($0, RSTART, RLENGTH); $0 = substr($0, RSTART + RLENGTH) } print }' >filtered && mv filtered pages
}

# ---- what a data set holds ----
page 0 inspect mds/plain
page 1 inspect tar/gnu.tar --show 2
page 0 inspect tar/webdataset --samples 3 --show 5 --json
page 1 inspect recordio/shards --json
page 0 inspect tfrecord/imagenet --show 0
page 0 verify mds/plain
page 0 verify tar/webdataset --json -t 1
page 1 verify recordio/shards --decode -t 1
page 0 show tar/webdataset --record 1
page 0 show tar/webdataset --batch 1 --batch-size 2 --seed 3 --epoch 3 --shuffle epoch --json
page 0 show mds/plain --shuffle none --batch-size 3 --decode jpeg:size=64
same data

# ---- every byte of the sets that pack writes, without encoding images anew ----
packed() { # TARGET ARGUMENT...
    target=$1
    shift
    page 0 pack "$@" "$target"
    (cd "$target" && find . -type f ! -name .iobench-set | LC_ALL=C sort | xargs cksum && echo) >>pages
}
for format in recordio shards tar files; do
    packed "set-$format" tar/webdataset -f $format -t 1
done
packed parts mds/plain -f recordio --shards 4 -t 1
packed mixed tfrecord/imagenet -f shards --shards 3 --shuffle=5 -t 1
packed first mds/plain -f tar --limit 3 --shard-size 4k -t 1
packed numbered recordio/shards -f recordio --on-error skip -t 1
packed back set-recordio -f files -t 1
page 1 pack set-recordio back -f shards
page 0 pack mds/plain new -f recordio --shards 2 --dry-run
# IDX files; what libjpeg makes of them is not shown.
mkdir idx && printf '\0\0\10\3\0\0\0\3\0\0\0\5\0\0\0\7%0105d' 7 >idx/train-images-idx3-ubyte && printf '\0\0\10\1\0\0\0\3\2\0\1' >idx/train-labels-idx1-ubyte &&
    printf '\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\11%072d' 7 >idx/t10k-images-idx3-ubyte && printf '\0\0\10\1\0\0\0\2\3\5' >idx/t10k-labels-idx1-ubyte
page 0 pack idx set-idx --dry-run --shards 2
page 0 pack idx/train-images-idx3-ubyte set-idx --dry-run -f recordio
page 0 pack idx set-idx -f tar --shuffle=3 -t 1
{ tar tf set-idx/*.tar && echo; } >>pages
for record in 0 1 2 3 4; do
    page 0 show set-idx --record $record
done
sed 's/, .* of images, from idx/, BYTES, from idx/; s/: offset [0-9]*  label/: offset AT  label/' pages >filtered && mv filtered pages
same packed

# ---- the orders of a hypothetical set ----
page 0 shuffle none buffer:50 epoch corgipile --records 1000 --shards 7 --sample-size 3k --classes 10 --batch-size 20
page 0 shuffle epoch buffer:50 --records 1000 --shards 7 --batch-size 20 --classes 4 --partition sticky,shards --ranks 1,3 \
    --remainder pad --epochs 3 --seed 5 --bs 64k --window 9
page 0 shuffle epoch --records 1001 --shards 7 --batch-size 16 --classes 4 --ranks 2 --remainder drop --json
page 0 shuffle buffer epoch --records 500 --shards 3 --batch-size 10 --partition elastic,replicated --ranks 2
page 0 shuffle --as mxnet --records 1000 --shards 7 --batch-size 20
# The words of the pictures and where they stand, and every byte.
page 0 shuffle none buffer:9 epoch --records 60 --shards 6 --classes 3 --batch-size 10 --partition shards,sticky --ranks 1,2 --plot orders.svg
sed 's/<text/\n&/g' orders.svg | grep '^<text' >>pages && cksum <orders.svg >>pages
same orders

# ---- what a cluster needs ----
page 0 size --gpus 8,64
page 0 size --gpus 100 --gpu h100 --busy 90 --sample-size 50k
page 0 size --gpus 3 --rate 500 --json
page 0 size --simulate --draws 20 --gpus 64
page 0 size --simulate --draws 20 --gpus 1024 --network llama3.1-70b --rate 1
page 0 size --simulate --draws 20 --gpus 8,64,16384 --network unet3d --storage nfs-100g,object-100g
page 0 size --simulate --draws 20 --gpus 13 --seed 3 --storage nfs-100g
page 0 size --simulate --draws 20 --gpus 16 --acceptance
page 0 size --gpus 1000000 --gpu h200
page 0 size --rate 5
# The user's own figures: of a storage, with its doubts and its curve, and of all else.
mkdir -p own/storage own/gpu
{
    printf '[storage]\ntitle=Slow\nsource=us\nread-bytes-per-s=1e9 +-7%%\nread-iops=5e4\nlatency-s=0.0003\nlatency-cv=0.4\n'
    printf 'curve-4096=1:4.1e7 +-1.8%%, 2:8.1e7, 8:2.8e8 +-3.4%%\ncurve-65536=1:5.1e8 +-3.7%%, 2:7.6e8\ndoubt=it was <warm>\n'
} >own/storage/slow.ini
grep -v 'title=\|curve\|doubt' own/storage/slow.ini >untitled.ini
printf '[network]\ntitle=Mine\nsource=me\n[data]\nsample-bytes=2e5\nsource=me\n[cpu]\ndecode-core-s=0.002\nsource=me\n[gpu]\nsamples-per-s=700\nsource=me\n[fabric]\nport-bytes-per-s=5e9\nsource=me\ndoubt=one port\n' >mine.ini
page 0 size --profiles own --storage slow,nvme-9550,own/storage/slow.ini --gpus 8,16 --draws 20
page 0 size --profiles own --storage slow --gpus 64 --draws 20 --json
page 0 size --profile own/storage/slow.ini --draws 20 --acceptance
page 0 size --profile untitled.ini --draws 20 --seed 2
page 0 size --profile mine.ini --gpus 48 --draws 20
page 0 size --profiles own --storage slow --draws 20 --chart chart.svg
sed 's/<text/\n&/g' chart.svg | grep '^<text' >>pages && cksum <chart.svg >>pages
# Recorded jobs: of NFS beside a disk, one that falls, and reads that Lustre does not count.
record() { # SECONDS,RATES SECONDS,RATES OPTION...
    printf '{"interval_s":%s}\n' "$1" "$2" >job.jsonl
    shift 2
    page 0 size --draws 20 --recording job.jsonl --sample-size 100000 "$@"
}
nfs='"nfs_read_bytes_per_s":262144000,"nfs_read_count_per_s":1000' disk='"storage_read_bytes_per_s":65536000,"storage_read_count_per_s":1000'
record '1,"storage_read_bytes_per_s":150e6,"storage_read_count_per_s":1000,"nfs_read_bytes_per_s":50e6' \
    '3,"storage_read_bytes_per_s":200e6,"storage_read_count_per_s":1000,"nfs_read_bytes_per_s":null' --recorded-gpus 8 --gpus 64
record '1,"storage_read_bytes_per_s":200e6' '1,"storage_read_bytes_per_s":100e6' --gpus 1 --json
for reads in "$disk,\"lustre_read_bytes_per_s\":10e6" "$disk,\"lustre_read_bytes_per_s\":2e9" "$nfs" "$disk,$nfs"; do
    record "1,$reads" "1,$reads" --gpus 1
done
page 0 size --simulate --draws 20 --gpus 12 --network llama3.1-70b --rate 1 --storage nfs-100g --json
rounded
same size

# ---- the steps of a network ----
page 0 plan lenet --backend reference --batch-size 2
page 0 plan lenet --backend reference --infer --classes 5 --tflops 2 --bandwidth 100
page 0 plan alexnet --backend reference --batch-size 8 --gpu h100 --buckets 2
page 0 plan lenet --backend reference --batch-size 3 --json
same plans

# ---- commands that others make, and tables of the program ----
page 0 sweep run --data tar/webdataset --decode-threads 1,2 --shuffle none,epoch,buffer:7 --batch-size 4:8:x2 --dry-run -o swept
page 0 sweep run --data tar/webdataset --reader pread,mmap --batch-size 8 --budget 1m --order-seed 2 --dry-run -o swept
page 0 sweep --data 'set-{format},tar' --format tar,files --trainer none,replay:h200,gpus=8 --launch 'true' --dry-run
page 0 sweep infer --data tar/webdataset --network lenet --batch-size 1,2 --dry-run -o swept
page 0 sweep --data tar/webdataset --ranks 1,2 --limit-samples 8 --launch 'srun -n {ranks}' --dry-run -o swept
page 0 sweep --data tar/webdataset --nodes 1,2 --limit-samples 8 --limit-samples-per-rank 4 --scaling strong,weak \
    --launch 'srun -N {nodes}' --dry-run -o swept
page 2 sweep --data tar/webdataset --ranks 1,2 --scaling weak --dry-run -o swept
page 0 list networks
page 0 help replay
# The first examples stand in the short help, all of them in that of their command.
for command in '' run sweep net; do
    try 0 help $command
    { echo "\$ iobench help $command" && sed -n '/^Usage/,/^$/p; /^Commands/,/^$/p; /^Example/,$p' out; } >>pages
done
# The manual, and what shells complete, of commands without plug-ins.
for command in compare report; do
    page 0 help $command --man
    for shell in bash zsh fish; do
        try 0 completion $shell
        { echo "\$ iobench completion $shell, of $command" &&
            sed -n "/^    $command)/,/;;/p; /^        $command) words/p; /__iobench_is $command'/p; /-a $command -d/p; /'$command:/p" out &&
            echo; } >>pages
    done
done
# What runs would do, but for what is the machine's.
dry() { # ARGUMENT...
    page 0 run --data tar/webdataset -t 2 --memory 16m --dry-run "$@"
}
dry --as horovod-tensorflow --format tar --against '--as mxnet --batch-size 3 -t 1' --against '--workload resnet50-a100 --epochs 3'
dry --workload retinanet-b200 --format tar --runs 4 --against '--epochs 2' --turns 2
dry --shuffle none --window 1 --bs 4k --limit-samples 3 --trainer replay:h200,gpus=2 --decode none --runs auto
dry --ranks 2 --rank 1 --partition sticky --reader pread --direct --iodepth 5 --seed 4 --decode jpeg:size=64
cat >jobs.ini <<'END'
[global]
data=tar/webdataset
decode-threads=1
memory=16m
batch-size=2
[one]
runs=7
shuffle=none
[two]
shuffle=buffer:4
epochs=2
END
page 0 run jobs.ini --dry-run
page 0 run jobs.ini --dry-run --batch-size 4 --runs 2 --paired
awk '/^  [A-Z]/ { machine = /^  (Storage|Host|Memory) / } /^[^ ]/ { machine = 0 } !machine' pages >filtered && mv filtered pages
same commands
# ---- sweeps, of made measurements ----
cat >made <<'END'
# RANKS iobench OPTION...: the JSON of one job
ranks=$1 valid=true why=null poor=null limit=decode cache=cold degraded=false
shift 2
echo "$*" >>launched
for word; do
    case $word in
    --json=*) json=${word#--json=} ;;
    --shuffle=*) order=${word#--shuffle=} ;;
    --decode-threads=*) threads=${word#--decode-threads=} ;;
    esac
done
number=$(echo "${json##*/}" | tr -dc 0-9 | cut -c5-)
rate=$((ranks * (9 - ranks) * 100 + ${threads:-1} * 10 + ${number:-0} * 7 % 11 * 20))
case $order in
none) echo "no <such> order" >&2 && exit 3 ;;
buffer:2) kill -9 $$ ;;
buffer:3) valid=false why='"was not cold"' ;;
buffer:4) degraded=true poor='"records were skipped"' ;;
buffer:5) limit=storage ;;
buffer:6) valid=false cut=true why='"interrupted by a signal"' ;;
esac
case $json,$ranks in
*run-2*) wait=5 ;;
*run-3*4) wait=2 cache=warm ;;
*) wait=2 ;;
esac
cat >"$json.new" <<JSON && mv "$json.new" "$json"
{"jobs": [{"valid": $valid, "interrupted": ${cut-false}, "invalid_reason": $why, "degraded": $degraded, "degraded_reason": $poor, "place": {"host": "node7"},
 "summary": {"samples_per_s": $rate, "limit": "$limit", "cache_before": "$cache"}, "engine": {"ranks": $ranks},
 "dataset": {"path": "/set", "format": "tar", "samples": ${SAMPLES:-77}, "record_bytes": 7700, "identity": "${IDENTITY:-one}"},
 "runs": [{"epochs": [{"wall_s": 40, "wait_s": $wait, "upload_s": 1, "compute_s": 4, "exchange_s": 7, "update_s": 8, "start_barrier_s": 3, "stop_barrier_s": 6}]}]}]}
JSON
END
swept() { # STATUS FOLDER OPTION...
    status=$1 folder=$2
    shift 2
    page "$status" sweep --data /set --launch 'sh made {ranks}' -o "$folder" --ranks 1 --decode-threads 1 --shuffle epoch "$@"
}
swept 0 scaled --ranks 1,4 -t 1,2 --limit-samples 40 --limit-samples-per-rank 10 --scaling strong,weak --runs 2
swept 0 scaled --ranks 1,4 -t 1,2 --limit-samples 40 --limit-samples-per-rank 10 --scaling strong,weak --runs 3 --json -
swept 0 scaled --ranks 1,4 -t 1,2 --limit-samples 40 --limit-samples-per-rank 10 --scaling strong,weak --runs 3 --csv - --json scaled.json
swept 1 scaled --ranks 1,2 --runs 1
cat scaled/sweep.json launched >>pages && rm launched
swept 1 failed --shuffle epoch,none,buffer:2,buffer:3,buffer:4,buffer:5,buffer:6 --runs 1 --json -
swept 1 failed --shuffle epoch,none,buffer:2,buffer:3,buffer:4,buffer:5,buffer:6 --runs 1
swept 1 failed --shuffle epoch,none,buffer:2,buffer:3,buffer:4,buffer:5,buffer:6 --runs 1 --retry --label mine --sandbox no
swept 1 failed --shuffle epoch,none,buffer:2,buffer:3,buffer:4,buffer:5,buffer:6 --runs 1 --retry --csv -
swept 0 replaced -t 1,2 --runs 1
SAMPLES=78 swept 1 replaced -t 1,2 --runs 2
IDENTITY=two swept 1 replaced -t 1,2 --runs 3
swept 1 failing --shuffle none,epoch --runs 1
SAMPLES=78 swept 1 failing --shuffle none,epoch --runs 2
swept 0 late -t 1,2,3 --budget 1ns --runs 1 --json -
swept 0 late -t 1,2,3 --budget 1ns --runs 1
echo '{"jobs": []}' >late/cell-00001-run-1.json && swept 1 late -t 1,2,3 --runs 1
echo '{}' >late/sweep.json && swept 1 late --decode-threads 1,2,3 --runs 1
mkdir other && touch other/.sweep.json.x.partial other/.cell-1.x.partial other/.mine.x.partial && swept 1 other --runs 1
ls -A other >>pages && rm other/.mine* && swept 0 other --runs 1 && ls -A other >>pages
page 0 sweep train --data /set --launch 'sh made 1' --runs 1
page 0 sweep shuffle epoch buffer:20 --records 1000 --shards 4 --dry-run
# A study of such.
rm launched
cat >ranks.ini <<'END'
[study]
title=Orders by ranks
question=Which is fast?
found=The one
found=that is <not> slow.
source=me
[data set]
pack=pack {source} {target} -f recordio
[data none]
pack=pack /nowhere {target}
[run {each} by {also}]
each=epoch none buffer:2 buffer:3 buffer:4 buffer:5
also=1 3
ranks={also}
command=run --data={set} --shuffle={each}
[run without]
command=run --data={none}
[run strange]
command=run --data={set} --reader=nothing
[table]
column=rate, 1/s: job.summary.samples_per_s
column=ranks: number(also)
column=limit: job.summary.limit
[picture]
kind=bars
bars=rate, 1/s
[says]
first="{row("epoch by 1").limit} at {row("epoch by 3").ranks} ranks."
second="{row("without").limit}"
END
study() { # STATUS OPTION...
    status=$1
    shift
    page "$status" study ./ranks.ini -o ranked --data tar/webdataset --sets sets --launch 'sh made {ranks}' "$@"
}
study 1
{ cat ranked/page.md && sed 's/<text/\n&/g' ranked/picture.svg | grep '^<text' && cat launched; } >>pages
rm ranked/epoch-by-3.json launched && IDENTITY=two study 1 --json
rm -r sets/set-* && study 1
touch -d yesterday tar/webdataset/train-000000.tar && study 1
cat launched >>pages
page 0 study ./ranks.ini -o ranked --data tar/webdataset --sets sets --launch 'sh made {ranks}' --dry-run
sed -E 's/, 0:0[0-9]:[0-9]{2} left/, TIME left/; s/("fingerprint": ")[0-9a-f]{16}/\1PRINT/; s/iobench-sweep-[0-9a-f]{8}/iobench-sweep-ID/; s/(set|none)-[0-9a-f]{8}/\1-ID/' pages >filtered && mv filtered pages
rounded
same sweeps
# Every option, with its short name, value and default.
for command in $("$IOBENCH" help --man | sed -n 's/^\\fBiobench\\-\([a-z]*\)\\fR(1)$/\1/p'); do
    "$IOBENCH" help "$command" --man | sed 's/\\f[BIR]//g; s/\\//g' | sed -n '/^\.TP$/{n; /^-/!d; h; n; s/.*(default \([^)]*\))\.*$/ [\1]/; t one
s/.*//; :one
H; x; s/\n//; p}' | sed "/--help\|--version\|--sandbox\|--allow-commands/d; s/^/$command /" >>pages
done
same options
page 0 study formats --dry-run --budget 1m
page 0 study lmdb --dry-run --data tar/webdataset --budget 10m
page 0 study sizing --dry-run
# One that measures nothing has the same figures everywhere.
cat >mine.ini <<'END'
[study]
title=Mine: of <steps>
question=How many has each?
found=The deeper the network,
found=the more.
source=me
[run {each} by {also}]
each=lenet tiny alexnet
also=1 2 4
command=plan {each} --backend reference --batch-size {also}
[run unknown]
command=plan nothing
[table]
column=steps: count(steps)
column=batch: number(also)
column=network: each
column=first: steps[0].name
column=a batch, 1/s: 1000 * count(steps) / number(also)
column=hide: 1
column=none: null
hidden=hide
[says]
first="{row("lenet by 4").steps} steps, and {row("alexnet by 1").steps}."
second="{row("unknown").steps} is not known."
END
page 1 study ./mine.ini -o study --json=study.json
page 1 study ./mine.ini -o study
python3 - >>pages <<'END' || fault "a study has no page"
import json
print(open("study/page.md").read(), end="")
figures, study = json.load(open("study.json")), json.load(open("study/study.json"))
for part in {key: figures[key] for key in ("rows", "says", "doubts")}, [{key: run[key] for key in ("name", "command")} for run in study["runs"]]:
    print(json.dumps(part, indent=2))
END
same studies
finish
