#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Studies: every file is valid, one runs from end to end and resumes, and one that cannot run
# reports why. With IOBENCH_LONG=1 all of them run.
# shellcheck disable=SC2154 # out is that of cli.sh
. "$(dirname "$0")/cli.sh"
command -v jq >/dev/null || skip "jq is not installed"

expect 0 "$IOBENCH" study
names=$(printf '%s\n' "$out" | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p')
[ "$(printf '%s\n' "$names" | wc -l)" = 15 ] || die "not 15 studies"
for name in $names; do # commands are checked by their option tables, expressions by jq
    expect 0 "$IOBENCH" study "$name" --dry-run
    says "iobench "
    [ ! -e "study-$name" ] || die "a dry run left study-$name"
done
listed=$("$IOBENCH" study)
expect 0 "$IOBENCH" list study
[ "$out" = "$listed" ] || die "list names other studies"

# The commands named in docs/features.md exist.
[ "$(grep -c '^| [0-9]' "$SRCDIR/docs/features.md")" = 44 ] || die "features.md has not 44 rows"
sed -n 's/^| [0-9]/&/p' "$SRCDIR/docs/features.md" | grep -o '`iobench [a-z]*' | cut -d' ' -f2 |
    sort -u >commands
while read -r name; do
    expect 0 "$IOBENCH" help "$name"
done <commands

# From end to end, on a few images.
study() { "$IOBENCH" study formats --budget 2s -o here "$@"; }
if ! built_with LMDB; then # one of its three formats cannot be written, and it says so
    expect 1 study
    says "this build reads LMDB but does not write it"
    exit 0
fi
expect 0 study
says "recordio" "tfrecord" "lmdb" "Here" "Cold, " "Published" "Page  "
for file in recordio.json tfrecord.json lmdb.json study.json page.md; do
    [ -s "here/$file" ] || die "no $file"
done
grep -q '^| run |' here/page.md || die "page.md has no table"
grep -q '^\*\*Published' here/page.md || die "page.md does not say what was found"
! grep -q "Not shown here" here/page.md || die "a sentence failed"
if command -v gnuplot >/dev/null; then
    grep -q '</svg>' here/picture.svg || die "no picture"
    grep -q '(picture.svg)' here/page.md || die "page.md has no picture"
fi
# The table shows the figures of the result.
rate=$(jq '.jobs[0].runs[0].epochs[0].samples_per_s' here/recordio.json)
expect 0 study --json=figures.json
jq -e --argjson rate "$rate" '.rows[] | select(.run == "recordio") | .["epoch 1, samples/s"]
    | . > 0.999 * $rate and . < 1.001 * $rate' figures.json >/dev/null ||
    die "the table has another rate than recordio.json: $rate"

# Finished results are kept; missing ones, or those of another command, are measured again.
inode() { stat -c %i "here/$1.json"; }
kept=$(inode recordio) again=$(inode lmdb)
rm here/tfrecord.json
jq '(.runs[] | select(.name == "lmdb") | .command) = "run"' here/study.json >changed
cat changed >here/study.json
expect 0 study
[ "$(inode recordio)" = "$kept" ] || die "a run that was done was made again"
[ -s here/tfrecord.json ] || die "a missing result was not made again"
[ "$(inode lmdb)" != "$again" ] || die "the result of another command was taken over"

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
rows={"runs": (job.runs | length), "twice": (2 * ($each | tonumber))}
[says]
first="The second has \(row("a 2").runs | show) runs."
second=row("gone").runs
END
expect 1 "$IOBENCH" study ./mine.ini -o mine
says "The second has 2 runs." "Not shown here: no run gone." "gone: " "/nowhere/at/all"
for wrong in 's/--runs/--rums/' 's/{each} --decode/{eahc} --decode/' 's/^command=run/command=rum/' \
    's/^title/titel/' 's/^pack=.*/pak=x/' 's/^first=/first=(/' \
    's/--no-calibrate/--server-drop-cmd true/'; do
    sed "$wrong" mine.ini >wrong.ini
    "$IOBENCH" study wrong.ini --dry-run -o wrong >log 2>&1 && die "accepted: $wrong"
done
expect 2 "$IOBENCH" study formast
says "did you mean 'formats'?"

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
