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
says '| good | fast | >= 2 x | 3.5 (3.5 .. 3.5) **holds**' '| few | slow | <= 2 % off | 0.5' \
    '**undecided**'
runs good 3
runs few 3
runs noisy 5
# shellcheck disable=SC2154 # out is set by expect
case $out in *' (-'*) die "the interval of a rate reaches below zero" ;; esac

# Figures scatter by factors; one of 0 has no logarithm.
expect 0 all --program "zero=echo 'claim none 0 ns goal <=1 ok'"
says '0 (0 .. 0) **holds**'

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

# A library that is not there is named, and a program that fails once has no claims.
cat >peers <<'END'
echo "skipped DALI, tar: not installed"
echo "claim a 3 x goal >=2 ok"
END
cat >later <<'END'
test ! -e late || exit 9
: >late
echo "claim x 1 y goal >=1 ok"
END
expect 0 all --program "peers=sh peers" --program "later=sh later"
says '`peers, DALI, tar`: not installed' '`later`: exit status 9' '| peers | a |'

# An equal share of the time left; what needs more is ended, with all that it started, and keeps finished runs.
cat >slow <<'END'
if [ -e begun ]; then
    trap 'echo asked >asked; exit 1' INT # it may have a setting of the machine to put back
    sh -c 'echo $$ >child; exec sleep 600' &
    wait
fi
: >begun
echo "claim first 3 x goal >=2 ok"
END
ended() { # what the slow program started is gone: a zombie has no arguments, and its PID may be another's
    for _ in $(seq 600); do
        [ "$(tr '\0' ' ' <"/proc/$(cat child)/cmdline")" = 'sleep 600 ' ] || return 0
        sleep 0.1
    done 2>/dev/null
    die "what an ended program started still runs"
}
wait_for_child() {
    for _ in $(seq 600); do
        [ -s child ] && return
        sleep 0.1
    done
    die "no second run: $(cat err)"
}
expect 1 all --total 0.01 --program "never=sleep 30"
says '`never`: its share of --total'
: >begun
expect 1 all --total 0.02 --json three.json --program "slow=sh slow"
says '`slow`: its share of --total'
ended

# A signal: finished runs and programs stay, and --resume measures the others alone.
rm -f begun child asked
python3 "$SRCDIR/bench/all.py" --folder folder --json four.json --program "good=echo 'claim fast 3.5 x goal >=2 ok'" \
    --program "slow=sh slow" --program "last=echo 'claim end 3 x goal >=2 ok'" >page 2>err &
all_pid=$!
wait_for_child
kill -TERM "$all_pid"
wait "$all_pid" || die "interrupted, exit status $?: $(cat err)"
[ -e asked ] || die "not asked to end"
grep -q '^| slow | first ' page || die "$(cat page)"
! grep -q '^| last ' page || die "went on after a signal"
ended
# A signal while a program is being started: it waits until the program is known, and ends it.
mkdir hook
cat >hook/sitecustomize.py <<'END'
import os, signal, subprocess, time
where, name = (subprocess, "_fork_exec") if hasattr(subprocess, "_fork_exec") else (
    subprocess._posixsubprocess, "fork_exec")
start = getattr(where, name)


def started(*arguments):
    is_second = os.path.exists("begun")  # before the first has made it
    pid = start(*arguments)
    while is_second and not os.path.exists("child"):
        time.sleep(0.01)
    if is_second:
        os.kill(os.getpid(), signal.SIGTERM)
    return pid


setattr(where, name, started)
END
rm -f begun child
PYTHONPATH=hook python3 "$SRCDIR/bench/all.py" --folder folder --program "slow=sh slow" >page 2>err ||
    die "interrupted at a start, exit status $?: $(cat err)"
grep -q '^| slow | first ' page || die "$(cat page)"
ended
again="sh -c 'echo measured >>again; echo claim again 1 x goal \">=1\" ok'"
expect 0 all --resume --json four.json --program "good=$again" --program "slow=$again" \
    --program "last=echo 'claim end 3 x goal >=2 ok'"
says '| good | fast |' '| slow | first |' '| last | end |'
[ ! -e again ] || die "measured again"
sed 's/"cpus": [0-9]*/"cpus": 4097/' four.json >other.json
expect 1 all --resume --json other.json --program "good=false"
grep -q 'another machine, its cpus differs' err || die "$(cat err)"

# No program of bench/ is forgotten.
for file in "$SRCDIR"/bench/*.c "$SRCDIR"/bench/*.py; do
    name=$(basename "$file")
    case $name in
    all.py) continue ;;
    *.c) program="{build}/bench/${name%.c}[ \"]" ;;
    *) program="{source}/$name " ;;
    esac
    ! grep -qE '"claim |import claim' "$file" || grep -q "$program" "$SRCDIR/bench/all.py" ||
        die "bench/all.py does not run $name"
done

# The page in docs/ is what the committed figures give.
rm page.md # whether all claims hold does not matter here
python3 "$SRCDIR/bench/all.py" --table "$SRCDIR"/docs/results/claims/*.json --markdown page.md
cmp page.md "$SRCDIR/docs/results/claims.md" || die "docs/results/claims.md is not what bench/all.py makes of claims/"
