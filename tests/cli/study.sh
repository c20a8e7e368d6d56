#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Studies: every file is valid, one runs from end to end and resumes, and one that cannot run
# reports why. With IOBENCH_LONG=1 all of them run.
# shellcheck disable=SC2034,SC2154 # out is that of cli.sh
ON_DISK=yes
. "$(dirname "$0")/cli.sh"
# holds FILE EXPRESSION: it is true of the JSON, as `it`
holds() { python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); sys.exit(not eval("(" + sys.argv[2] + ")"))' "$@"; }

expect 0 "$IOBENCH" study
names=$(printf '%s\n' "$out" | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p')
[ "$(printf '%s\n' "$names" | wc -l)" = 17 ] || die "not 17 studies"
for name in $names; do # commands are checked by their option tables, expressions by their grammar
    expect 0 "$IOBENCH" study "$name" --dry-run
    says "iobench "
    [ ! -e "study-$name" ] || die "a dry run left study-$name"
done
listed=$("$IOBENCH" study)
for list in "list study" "study list"; do
    # shellcheck disable=SC2086 # two words
    expect 0 "$IOBENCH" $list
    [ "$out" = "$listed" ] || die "$list names other studies"
done

# From end to end, on a few images.
study() { "$IOBENCH" study formats --budget 2s -o here "$@"; }
runs="recordio tfrecord lmdb"
unset COLUMNS
expect 0 study
if ! built_with LMDB; then # that run is left out, and named
    says "lmdb: this build reads LMDB but does not write it"
    runs="recordio tfrecord"
fi
# shellcheck disable=SC2086 # words
says $runs "Here" "Cold, " "Published" "Page  "
[ "$(printf '%s\n' "$out" | awk '!/^Page / { print length($0) }' | sort -n | tail -n 1)" -le 80 ] || die "wider than 80 columns"
COLUMNS=60
export COLUMNS
expect 0 study
unset COLUMNS
[ "$(printf '%s\n' "$out" | grep -c '^  recordio ')" -ge 2 ] || die "a narrow terminal has no second block"
says "  run         epoch 1    epoch 2  read in 1  read in 2" "  run       read in 3   set"
for file in $runs; do
    [ -s "here/$file.json" ] || die "no $file.json"
done
for file in study.json page.md; do
    [ -s here/$file ] || die "no $file"
done
grep -q '^| run |' here/page.md || die "page.md has no table"
grep -q '^\*\*Published' here/page.md || die "page.md does not say what was found"
! grep -q "Not shown here" here/page.md || die "a sentence failed"
grep -q '</svg>' here/picture.svg || die "no picture"
grep -q '(picture.svg)' here/page.md || die "page.md has no picture"
# The table shows the figures of the result.
expect 0 study --json=figures.json
holds figures.json 'abs(next(row for row in it["rows"] if row["run"] == "recordio")["epoch 1, samples/s"] /
    json.load(open("here/recordio.json"))["jobs"][0]["runs"][0]["epochs"][0]["samples_per_s"] - 1) < 0.001' ||
    die "the table has another rate than recordio.json"

# No other program is needed for any of it.
mkdir none
expect 0 env PATH="$T/none" "$IOBENCH" study formats --budget 2s -o here
says "Cold, "
! grep -q "Not shown here" here/page.md || die "a sentence needs another program"

# Finished results are kept; missing ones, or those of another command, are measured again.
inode() { stat -c %i "here/$1.json"; }
kept=$(inode recordio)
rm here/tfrecord.json
expect 0 study
[ "$(inode recordio)" = "$kept" ] || die "a run that was done was made again"
[ -s here/tfrecord.json ] || die "a missing result was not made again"

# A foreign file is kept.
echo "my notes" >here/page.md
expect 1 study
says "file exists"
[ "$(cat here/page.md)" = "my notes" ] || die "a foreign page.md was replaced"

# A user's study; a run that fails is named, and the others count.
cat >mine.ini <<'END'
[study]
title=Mine
found=Nothing.
source=me
[data set]
pack=pack synthetic:count=40,mean=6k {target} --format recordio
[run a {each}]
each=1 2
command=run --data {set} --runs {each} --decode none --no-calibrate
[run gone]
command=run --data /nowhere/at/all
[table]
column=runs: count(job.runs)
column=twice: 2 * number(each)
[says]
first="The second has {row("a 2").runs} runs."
second=row("gone").runs
END
mine() { "$IOBENCH" study ./mine.ini -o mine "$@"; }
expect 1 mine
says "The second has 2 runs." "Not shown here: no run gone." "gone: " "/nowhere/at/all"

# Each [picture] is a panel; an expression gives several, with dashed curves and marks. One that is no expression is refused.
sed '/^\[run gone/,/^command/d; /^second/d' mine.ini >panels.ini
cat >>panels.ini <<'END'
[picture Doubled]
kind=lines
across=runs
up=twice
lines=[["line of two", [[1, 2], [2, 4]], "dashed"]]
[picture]
kind=time
panels=of(rows, ["Panel {runs}", [["a curve", [[0, runs], [4, 7]]]], [[3, "mark {runs}"]]])
END
printf '[picture Gr\366n]\ny=H\366he\nlines=[["c", [[1, 2], [2, 4]]], ["nothing", null]]\n' >>panels.ini # Latin-1
expect 0 "$IOBENCH" study ./panels.ini -o panels --json=panels.json
holds panels.json '[(part["title"], part["kind"], [curve[0] for curve in part["lines"]], part.get("marks")) for part in it["picture"]] == [
    ("Doubled", "lines", ["line of two", "twice"], None), ("Panel 1", "time", ["a curve"], [[3, "mark 1"]]),
    ("Panel 2", "time", ["a curve"], [[3, "mark 2"]]), ("Gr\\xf6n", "", ["c", "nothing"], None)]' || die "other panels"
holds panels.json 'it["picture"][0]["lines"][1][1] == [[1, 2], [2, 4]] and it["picture"][2]["lines"][0][1] == [[0, 2], [4, 7]]' || die "other points"
[ "$(grep -c stroke-dasharray panels/picture.svg)" -ge 1 ] || die "no dashed curve"
for text in Doubled "line of two" "Panel 1" "Panel 2" "mark 2"; do grep -q ">$text<" panels/picture.svg || die "no '$text' in the picture"; done
grep -q ">nothing<" panels/picture.svg && die "the legend names a curve without points"
sed 's/^panels=.*/panels=of(rows,/' panels.ini >broken.ini
expect 1 "$IOBENCH" study ./broken.ini -o panels
says "[picture] panels: expected"

# A result is kept for the same command, launcher, data and build only.
for change in '[run for run in it["runs"] if run["name"] == "a 2"][0]["command"] = "run"' 'it["build"] = "0"' 'it["data"] = "x"' \
    '[run for run in it["runs"] if run["name"] == "a 2"][0]["launch"] = "mpirun"' 'it["nodes"] = "--emulate-nodes"'; do
    kept=$(stat -c %i mine/a-2.json)
    python3 -c "import json; it = json.load(open('mine/study.json')); $change; json.dump(it, open('mine/study.json', 'w'))"
    expect 1 mine
    [ "$(stat -c %i mine/a-2.json)" != "$kept" ] || die "taken over despite $change"
done

# Results of the user's data as they were before they were replaced, if only by equal files, are not kept.
sed '/^\[run gone/,/^command/d; /^second/d' mine.ini >sets.ini
"$IOBENCH" pack synthetic:count=40,mean=6k own --format files >log 2>&1 || die "no set: $(cat log)"
sed 's/^pack=.*/pack=pack {source} {target} --format recordio/' sets.ini >own.ini
own() { "$IOBENCH" study ./own.ini -o of-own --sets own-sets --data own "$@"; }
expect 0 own
kept=$(stat -c %i of-own/a-1.json)
expect 0 own
[ "$(stat -c %i of-own/a-1.json)" = "$kept" ] || die "measured again"
file=$(find own -name '*.jpg' | head -n 1)
cp -a "$file" copied.jpg
mv copied.jpg "$file"
expect 0 own
says "2 results are of other data sets" "measured again" "The second has 2 runs."
[ "$(stat -c %i of-own/a-1.json)" != "$kept" ] || die "a result of the former data is kept"
[ "$(find own-sets -mindepth 1 -maxdepth 1 -name 'set-*' | wc -l)" = 2 ] || die "the set was not made of the new data"

# The nodes that a result was measured on are recorded and shown with their server and links; here nothing is left to run on them.
if [ "$(id -u)" = 0 ] && "$IOBENCH" list reader | grep -q '^ *nfs '; then
    mkdir starts && printf '#!/bin/sh\nexit 1\n' >starts/mpirun && chmod 755 starts/mpirun
    sed 's/^each=1 2/each=1\nranks=1/; /^\[says/,$d' sets.ini >nodes.ini
    nodes() { PATH="$T/starts:$PATH" "$IOBENCH" study ./nodes.ini -o of-nodes "$@"; }
    expect 0 nodes
    for given in "" " --file-server" " --link-rate 5B/s" " --file-server --link-rate 5B/s"; do
        python3 - "--emulate-nodes$given" <<'END'
import json, sys
it = json.load(open("of-nodes/study.json"))
it["nodes"], it["runs"][0]["launch"] = sys.argv[1], "mpirun -n 1"
json.dump(it, open("of-nodes/study.json", "w"))
END
        # shellcheck disable=SC2086 # words
        expect 0 nodes --emulate-nodes $given
        grep -q "iobench study nodes --budget 180 --emulate-nodes$given\$" of-nodes/page.md || die "$given: other nodes on the page"
    done
fi

# Each job of a result may be in doubt, not the first alone.
"$IOBENCH" pack synthetic:count=8,mean=6k bad --format files >log 2>&1 || die "no set: $(cat log)"
file=$(find bad -name '*.jpg' | head -n 1)
head -c 500 "$file" >short && cat short >"$file"
sed -e '/^\[run gone/,$d' -e "s|^command=.*|& --against '--data $PWD/bad --decode jpeg --on-error skip'|" mine.ini >doubts.ini
expect 0 "$IOBENCH" study ./doubts.ini -o doubts
says "2 runs: " "skipped"
"$IOBENCH" pack synthetic:count=80,mean=6k ramped --format files >log 2>&1 || die "no set: $(cat log)"
cat short >"$(find ramped -name '*.jpg' | head -n 1)"
cat >ramp.ini <<END
[study]
title=Mine
found=Nothing.
source=me
[run a]
command=ramp --data '$PWD/ramped' --decode jpeg --on-error skip -B 1 --from 1 --to 1 --limit 1000% --trainer replay:rate=100
END
expect 0 "$IOBENCH" study ./ramp.ini -o ramped-study
says "a: 1 record was skipped"

# After a rebuild a study trains again: the weights of the earlier build are in its folder.
if out=$(grep -- '--checkpoint {out}' "$SRCDIR"/cmd/study/*.ini | grep 'command=train' | grep -v -- '--restart'); then
    die "keeps old weights: $out"
fi

# What is wrong in a file is found before anything runs.
for wrong in 's/--runs/--rums/' 's/{each} --decode/{eahc} --decode/' 's/^command=run/command=rum/' \
    's/^title/titel/' 's/^pack=.*/pak=x/' 's/^first=/first=(/' 's/count(/cuont(/' 's/count(job.runs)/count()/' 's/\[says\]/&\nsecond=)/' \
    's/\[says\]/all=rows[0].gone\n&/' 's/\[says\]/all=of([1], "{gone}")\n&/' 's/--no-calibrate/--server-drop-cmd true/'; do
    sed "$wrong" mine.ini >wrong.ini
    "$IOBENCH" study wrong.ini --dry-run -o wrong >log 2>&1 && die "accepted: $wrong"
done

# A study reports unmet requirements.
sed '/^title/a needs=gpu' mine.ini >gpu.ini
if [ ! -e /dev/nvidia0 ]; then
    expect 1 "$IOBENCH" study gpu.ini
    says "needs an NVIDIA GPU"
fi

[ -n "${IOBENCH_LONG-}" ] || exit 0
for name in $names; do
    "$IOBENCH" study "$name" --budget 1s -o "long-$name" >log 2>&1 && continue
    grep -Eq 'needs |control group' log || die "study $name: $(cat log)"
done
