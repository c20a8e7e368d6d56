#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/fuzz/campaign.sh [--total N] [--least N] [--traced N] [--turn SECONDS] [--nice N]
#        [--folder FOLDER] [TARGET...]
# Fuzz all targets in rotation, one process at low priority, until each has --least executions
# (10^6) and all together --total (10^8); then print a table. All under the address and
# undefined-behaviour sanitizers. In the first --traced (10^5) of each target libFuzzer also sees
# the operands of comparisons (FOLDER/traced), with which it finds magic numbers; in the others
# (FOLDER/fast) it does not, which is faster: 3.4 times in the JPEG decoder. A stopped campaign
# resumes: its progress is in FOLDER/tally, inputs that reached new code are in FOLDER/corpus.
#        tests/fuzz/campaign.sh --table          print the table
#        tests/fuzz/campaign.sh --merge [TARGET...]  add inputs of new coverage to tests/fuzz/corpus
# Needs clang with its libFuzzer (Debian and Ubuntu: apt-get install clang libclang-rt-14-dev). A
# finding stops its target only: the input is in FOLDER/findings.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
total=100000000 least=1000000 traced=100000 turn=60 nice=19 folder=$source/build-fuzz action=run
while [ $# -gt 0 ]; do
	case $1 in
	--total) total=$2; shift 2 ;;
	--least) least=$2; shift 2 ;;
	--traced) traced=$2; shift 2 ;;
	--turn) turn=$2; shift 2 ;;
	--nice) nice=$2; shift 2 ;;
	--folder) folder=$2; shift 2 ;;
	--table | --merge) action=${1#--}; shift ;;
	-*) sed -n '3,14s/^# //p' "$0" >&2; exit 2 ;;
	*) break ;;
	esac
done
targets=("$@")
if [ $# -eq 0 ]; then
	mapfile -t targets < <(cd "$source/tests/fuzz" && printf '%s\n' fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
fi

build() {
	command -v clang >/dev/null || { echo "clang is missing: apt-get install clang" >&2; exit 77; }
	echo 'int LLVMFuzzerTestOneInput(const void *b, unsigned long n) { return b && n > 9; }' |
		clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null || {
		echo "clang has no libFuzzer: apt-get install libclang-rt-14-dev" >&2; exit 77; }
	build_with traced -O1
	build_with fast -O2 -fno-sanitize-coverage=trace-cmp
}

build_with() {
	local made=$folder/$1
	shift
	mkdir -p "$made/bin" # a concurrent build does not touch it
	if [ ! -f "$made/Makefile" ]; then
		(cd "$made" && "$source/configure" -q --without-cuda CC="${CC:-clang}" \
			CFLAGS="-g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all $*")
	fi
	make -s -C "$made" "${targets[@]/#/tests/fuzz/fuzz_}"
	for name in "${targets[@]}"; do
		cp --remove-destination "$made/tests/fuzz/fuzz_$name" "$made/bin/"
	done
}

# Print the executions of a target so far, by one build or all.
done_by() {
	awk -v t="$1" -v b="${2:-}" '$1 == t && (!b || $5 == b) { n += $2 } END { print n + 0 }' \
		"$folder/tally"
}
done_by_all() { awk '{ n += $2 } END { print n + 0 }' "$folder/tally"; }

# Run one turn of a target. Adds to the tally: target, executions, edges, findings, build. The
# quarantine of freed memory is small: a large one takes most of the time. The time limit of an input
# is generous: it also runs while the process is stopped.
fuzz() {
	local name=$1 log=$folder/log-$1 found=0 build=traced
	[ "$(done_by "$name" traced)" -lt "$traced" ] || build=fast
	mkdir -p "$folder/corpus/$name" "$folder/findings"
	(cd "$folder" && ASAN_OPTIONS=quarantine_size_mb=4:thread_local_quarantine_size_kb=64 \
		nice -n "$nice" "$build/bin/fuzz_$name" -max_total_time="$turn" \
		-max_len=16384 -timeout=300 -rss_limit_mb=2048 -malloc_limit_mb=64 -print_final_stats=1 \
		-artifact_prefix="findings/$name-" "corpus/$name" \
		"$source/tests/fuzz/corpus/$name" >"$log" 2>&1) || found=1
	local count edges
	count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	echo "$name ${count:-0} ${edges:-0} $found $build" >>"$folder/tally"
	[ $found = 0 ] || echo "$name: a finding, see $log"
	return $found
}

table() {
	echo "| target | comparisons traced | not traced | edges | inputs | findings |"
	echo "|---|---|---|---|---|---|"
	for name in "${targets[@]}"; do
		inputs=$(find "$folder/corpus/$name" -type f 2>/dev/null | wc -l)
		awk -v t="$name" -v inputs="$inputs" '
			$1 == t { n[$5] += $2; if ($5 == "traced" && $3 > e) e = $3; f += $4 }
			END { printf "| %s | %d | %d | %d | %d | %d |\n", t, n["traced"], n["fast"], e, inputs, f }' \
			"$folder/tally"
	done
	awk '{ n[$5] += $2; f += $4 }
		END { printf "| all | %d | %d | | | %d |\n", n["traced"], n["fast"], f }' "$folder/tally"
}

mkdir -p "$folder"
touch "$folder/tally"
case $action in
table) table; exit 0 ;;
merge)
	build
	for name in "${targets[@]}"; do
		into=$source/tests/fuzz/corpus/$name
		mkdir -p "$into"
		"$folder/traced/bin/fuzz_$name" -merge=1 -max_len=4096 "$into" "$folder/corpus/$name" 2>&1 |
			sed -n 's/^MERGE-OUTER: \(.* new files.*\)/\1/p' | sed "s/^/$name: /"
	done
	exit 0 ;;
esac

build
stopped=" "
while :; do
	all_did_least=yes
	for name in "${targets[@]}"; do
		case $stopped in *" $name "*) continue ;; esac
		did=$(done_by "$name")
		if [ "$did" -lt "$least" ]; then
			all_did_least=no
		elif [ "$(done_by_all)" -ge "$total" ]; then
			continue
		fi
		fuzz "$name" || stopped="$stopped$name "
	done
	[ "$all_did_least" = no ] || [ "$(done_by_all)" -lt "$total" ] || break
	# All targets may have stopped.
	[ "$(wc -w <<<"$stopped")" -lt ${#targets[@]} ] || break
done
table
[ "$stopped" = " " ]
