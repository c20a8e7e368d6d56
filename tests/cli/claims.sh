#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/all.py: a claim is decided by its interval, a noisy one is measured more often, and several
# machines make one table. The programs here only print.
# shellcheck disable=SC2016 # marks of the page, not commands
. "$(dirname "$0")/cli.sh"

python3 -c '' 2>/dev/null || skip "python3 is not installed"
all() {
    python3 "$SRCDIR/bench/all.py" --folder folder "$@" 2>err
}
runs() { # NAME COUNT: check how often the program ran
    [ "$(grep -c "^$1: run " err)" = "$2" ] || die "$1 did not run $2 times: $(cat err)"
}

cat >noisy <<'END'
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo "$n" >count
echo "claim turns $((n % 2 * 4)).5 x goal >=2 ok"
END
expect 0 all --most 5 --json one.json --program "good=echo 'claim fast 3.5 x (1 .. 9) goal >=2 ok'" \
    --program "few=echo 'claim slow 0.5 % off goal <=2 ok (more)'" --program "noisy=sh noisy"
says '| good | fast | >= 2 x (1 .. 9) | 3.5 (3.5 .. 3.5) **holds**' '| few | slow | <= 2 % off | 0.5' \
    '**undecided**'
runs good 3
runs few 3
runs noisy 5

# The same claims the other way round; what cannot run, or says nothing useful, is named.
expect 1 all --json two.json --label other --program "good=echo 'claim fast 1.5 x goal >=2 short'" \
    --program "few=echo 'claim slow 2.5 % off goal <=2 short'" --program "absent=./not-there" \
    --program "bad=echo 'claim without a goal'" --program "skips=sh -c 'echo needs a GPU; exit 77'" \
    --program "dies=sh -c 'echo claim x 1 y goal \">=1\" ok; exit 9'"
says '1.5 (1.5 .. 1.5) **fails**' '2.5 (2.5 .. 2.5) **fails**' '`absent`: cannot run' \
    '`bad`: not a claim: claim without a goal' '`skips`: exit status 77: needs a GPU' '`dies`: exit status 9'

expect 1 all --table one.json two.json --markdown page.md
grep -q '^| good | fast | .*holds.* | 1.5 .*fails.* |$' page.md || die "$(cat page.md)"
grep -q '^| noisy | turns | .* |  |$' page.md || die "a claim that one machine lacks"
