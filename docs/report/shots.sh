#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Retakes the screenshots of docs/report.md and README.md from two real runs: docs/report/shots.sh [IOBENCH [OPTIONS]]
# Measures cold storage, so run it on an idle machine. Needs Chromium.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
iobench=${1:-$top/build/iobench}
[ $# = 0 ] || shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$iobench" run --format shards --drop-caches --runs 3 --label before --iodepth 4 --json "$folder/before.json" "$@"
"$iobench" run --format shards --drop-caches --runs 3 --label after --decode none --json "$folder/after.json" "$@"
"$iobench" report -o "$folder/report.html" "$folder/before.json" "$folder/after.json"
shot() {
    python3 "$top/tests/cli/browser.py" shot "$folder/report.html" "$folder/$1.png" "$2" "$3" "$4"
    mv "$folder/$1.png" "$top/docs/report/$1.png"
}
python3 "$top/tests/cli/browser.py" check "$folder/report.html"
shot light 1600 1600 light
shot dark 1600 1600 dark
shot narrow 400 1600 light
