#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Storage is not the bottleneck if records come from memory, or if --limit-rate throttles them:
# table, JSON, advice and `size` report that. They also mark generated images, and a --memory-limit
# larger than the set.
. "$(dirname "$0")/cli.sh"

# Not on $T's file system: in memory, without storage.
memory=$(mktemp -d /dev/shm/iobench-cli-XXXXXX 2>/dev/null) || skip "no /dev/shm"
# shellcheck disable=SC2034 # for cli.sh
CLEANUP="rm -rf $memory"
[ "$(stat -f -c %T "$memory")" = tmpfs ] || skip "/dev/shm is no tmpfs"
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k "$memory/set" -f recordio

# shellcheck disable=SC2154 # out is set by expect
says_not() {
    case $out in
    *"$1"*) die "says '$1'" ;;
    esac
}
run() {
    expect 0 "$IOBENCH" run -d "$memory/set" --decode none --no-calibrate --json out.json "$@"
}
run --runs 2
says_not "Limit    storage"
says_not "a larger queue depth"
says_not "to find the limit of storage"
case $out in
*"Limit    decoding"*) echo "copying is slower than the page cache here (sanitizers, a busy machine)" ;;
*)
    says "Limit    the page cache, not storage" ", from the page cache [1]" " page_cache"
    grep -q '"limit": "page_cache"' out.json || die "the JSON names another limit"
    expect 0 "$IOBENCH" size out.json
    says "bottleneck: page_cache" "storage may be slower"
    ;;
esac

# So long that a busy machine, which ends it late, keeps within a tenth of that rate.
run --runs 1 --limit-rate 2m
says "at most 2.00 MiB/s (--limit-rate)" "Limit    --limit-rate: 2.00 MiB/s allowed, " \
    "at --limit-rate [1]" " rate" "omit --limit-rate"
says_not "a larger queue depth"
says_not "--iodepth auto (now"
says_not "Limit    storage"
grep -q '"limit": "rate"' out.json || die "the JSON names another limit"

# Generated images are marked in every form: by folder, by file, repacked.
expect 0 "$IOBENCH" pack "$memory/set" copied -f files
for set in "$memory/set" "$memory/set/train.rec" copied; do
    expect 0 "$IOBENCH" run -d "$set" --decode none --no-calibrate --runs 2 --json out.json
    says ", synthetic"
    grep -q '"synthetic": true' out.json || die "$set is not synthetic in the JSON"
done
expect 0 "$IOBENCH" run -d "$memory/set" --decode none --no-calibrate --runs 1 --against '--iodepth 1' --json out.json
[ "$(grep -c '"synthetic": true' out.json)" = 2 ] || die "runs that alternate drop it"
expect 0 "$IOBENCH" run -d copied --decode none --no-calibrate --runs 2 --json out.json --csv out.csv
head -n 1 out.csv | grep -q ',synthetic,' || die "no column of it"
again out.json again.json
"$IOBENCH" compare out.json again.json | grep -q "A read synthetic data" || die "compare drops it"
expect 0 "$IOBENCH" plot -o chart.svg out.json
grep -q "synthetic data" chart.svg || die "plot drops it"
rm copied/.iobench-set
run -d copied --runs 1
says_not ", synthetic"
grep -q '"synthetic": false' out.json || die "photographs are called synthetic"

# Without permission for a control group: an error, and no figure.
out=$("$IOBENCH" run -d copied --decode none --no-calibrate --runs 1 --memory-limit 4g 2>&1) || {
    says "--memory-limit"
    skip "no control group can be made here"
}
says "--memory-limit 4.00 GiB has no effect: the data set of"
