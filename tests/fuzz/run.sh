#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/run.sh TARGET [SECONDS [FOLDER]]
# Fuzz one target (recordio, tfrecord, ...) with clang's libFuzzer, address and undefined-behaviour
# sanitizers, starting from its corpus. New inputs go to FOLDER/new-TARGET, a crash to the current
# folder. Merge inputs worth keeping into the corpus by hand:
#   FOLDER/tests/fuzz/fuzz_TARGET -merge=1 tests/fuzz/corpus/TARGET FOLDER/new-TARGET
set -e
target=$1 seconds=${2:-120} source=$(cd "$(dirname "$0")/../.." && pwd)
folder=${3:-$source/build-fuzz}
[ -n "$target" ] || { echo "usage: $0 TARGET [SECONDS [FOLDER]]" >&2; exit 2; }
command -v clang >/dev/null || { echo "clang is missing" >&2; exit 77; }
mkdir -p "$folder" "$folder/new-$target"
if [ ! -f "$folder/Makefile" ]; then
	(cd "$folder" && "$source/configure" -q CC=clang \
		CFLAGS='-g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all')
fi
make -s -C "$folder" "tests/fuzz/fuzz_$target"
exec "$folder/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
	-rss_limit_mb=1024 -print_final_stats=1 "$folder/new-$target" "$source/tests/fuzz/corpus/$target"
