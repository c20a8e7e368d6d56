#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table of falsehoods that any measurement can meet, each told to every command that measures: bytes and
# counts of them, a clock of another speed, a process that stands still, a quota of CPU time, caches that others
# drop. A cell whose command does not say it fails by name. Without IOBENCH_LONG=1 a third of the cells is tried, two of
# each command; CELLS="run:stop net:quota" tries these.
# shellcheck disable=SC2086,SC2034 # words without blanks; what liars.sh shares
# shellcheck source=tests/liars/liars.sh
. "$(dirname "$0")/liars.sh"
# shellcheck source=tests/liars/groups.sh
. "$SRCDIR/tests/liars/groups.sh"
with_mpi && HAS_MPI=1 || HAS_MPI=
expect 0 "$IOBENCH" pack synthetic:count=300,mean=20k,classes=3 set
expect 0 "$IOBENCH" pack synthetic:count=8000,mean=20k,classes=3 big

# start COMMAND: some seconds of it, in the background, in words that $PREFIX may begin.
start() {
    READ="--data set --reader pread --memory 16m --bs 32k"
    LENET="--network lenet --size 28 --classes 3 --backend reference"
    slow=
    case $1 in
    run) set -- run $READ --decode none --runs 1 --no-calibrate --limit-rate $RATE ;;
    train) set -- train $READ $LENET --batch-size 8 --epochs 1 --limit-rate $RATE ;;
    evaluate) set -- train $READ $LENET --eval-data set --batch-size 8 --epochs 1 --limit-samples 16 --limit-rate $RATE ;;
    infer) set -- infer $READ $LENET --batch-size 8 --limit-rate $RATE ;;
    net) set -- net --no-collectives --pairs none --to 8 --repeats 15 --repeat-time 50ms ;;
    net_beside) set -- net --no-messages --no-collectives --pairs none --rounds 1 --exchange-time 2s --step-time 20ms \
        --network lenet --beside "$READ --decode none --limit-rate $RATE" ;;
    size) set -- size --measure set --read-sizes 4k --depths 1,2 --measure-time 200ms ;;
    ramp) set -- ramp $READ --decode none --from 2 --to 2 --runs 1 --duration 2s --batch-size 2 --trainer replay:rate=100 ;;
    beside) set -- run $READ --decode none --runs 1 --no-calibrate --limit-rate $RATE --beside "--batch-size 8" ;;
    write) set -- checkpoint written --bytes 1m --ranks 2 --writes 30 --reads 0 --chunk 512k --step-time 100ms --interval 1 ;;
    restore)
        slow=read-slow # each read takes 20 ms longer
        set -- checkpoint written --bytes 4m --ranks 1 --writes 1 --reads 1 --chunk 32k --iodepth 1 --reader pread
        ;;
    monitor) set -- monitor --interval 500ms --count 5 . ;;
    verify) set -- verify --decode -t 1 big ;;
    pack)
        rm -rf packed
        set -- pack synthetic:count=4000,mean=20k packed --format tfrecord:compression=gzip
        ;;
    esac
    tried="$*"
    shim=$slow${LIE:+${slow:+,}$LIE}
    case $1 in
    net) set -- "$MPIRUN" -n 2 ${shim:+env LD_PRELOAD="$SHIM" LIAR="$shim"} "$IOBENCH" "$@" ;;
    *) set -- ${shim:+env LD_PRELOAD="$SHIM" LIAR="$shim"} "$IOBENCH" "$@" ;;
    esac
    timeout -k 5 200 "$@" >out 2>&1 &
    PROCESS=$!
}

# The processes of this test that measure: each has a thread which watches.
measuring() {
    grep -ls '^guard$' /proc/[0-9]*/task/[0-9]*/comm | sed 's|^/proc/\([0-9]*\)/.*|\1|' | sort -u | while read -r one; do
        [ "$(readlink "/proc/$one/cwd")" != "$T" ] || echo "$one"
    done
}

# Wait until one does for a while, which is longer than that thread outlives a short measurement; false if the
# command ended before.
await_measuring() {
    WHO=
    while kill -0 $PROCESS 2>/dev/null; do
        before=$WHO WHO=$(measuring)
        [ -z "$WHO" ] || [ "$WHO" != "$before" ] || return 0
        sleep 0.2
    done
    return 1
}

move() { for one in $WHO; do put "$one" "$1/cgroup.procs"; done; }

# What happens to it then.
deed() {
    case $1 in
    stop)
        kill -STOP $WHO
        sleep 1.5
        kill -CONT $WHO
        ;;
    freeze)
        move "$FREEZER"
        freeze "$FREEZER"
        sleep 1.5
        thaw "$FREEZER"
        ;;
    quota)
        quota "$CPU" 1000
        move "$CPU"
        sleep 3
        quota "$CPU" max
        ;;
    drop) put 1 /proc/sys/vm/drop_caches ;;
    esac
}

cell() { # COMMAND LIE
    case " ${CELLS-$1:$2} " in *" $1:$2 "*) ;; *) return ;; esac
    lie "$1: $2"
    case $1 in net | net_beside) [ "$HAS_MPI" ] || { cannot "no mpirun" && return; } ;; esac
    case $1:$2 in
    *:half | *:double | restore:*) can_lie || return ;;
    *:freeze) [ "$FREEZER" ] || { cannot "no control group can be frozen" && return; } ;;
    *:quota) [ "$CPU" ] || { cannot "no control group with a quota" && return; } ;;
    *:drop) is_root || return ;;
    esac
    LIE=
    case $2 in half | double) LIE=clock-$2 ;; esac
    for RATE in 2m 700k 200k; do # where the deed came after the last read, a slower one
        start "$1"
        during=yes missed=
        case $2 in
        half | double) ;;
        *) { await_measuring && deed "$2" && during=$(measuring); } || missed="it ended before it measured" ;;
        esac
        wait $PROCESS
        status=$? out=$(cat out)
        [ -z "$during" ] || [ "$missed" ] || break
    done
    case $2 in
    half | double) caught "the clock is unreliable" ;;
    stop | freeze) caught "the process was stopped and continued" ;;
    quota) caught "CPU quota" ;;
    drop) caught "dropped the machine's page cache" ;;
    esac
}

# told LIE WORDS COMMAND...: a falsehood about bytes, which all that read them must see.
told() {
    LIE=$1 words=$2
    shift 2
    lie "$1: $LIE"
    can_lie && is_root || return 0
    tried="$*"
    case $LIE in
    drop-*) undropped attempt "$@" ;;
    *) attempt "$@" ;;
    esac
    caught "$words"
}

attempt() {
    rm -rf written
    cat set/* >log
    missed=
    out=$(LD_PRELOAD="$SHIM" LIAR="$LIE" timeout -k 5 200 "$IOBENCH" "$@" 2>&1) && missed="exit status 0"
}

READ="--data set --reader pread --memory 16m --bs 32k" READS="--decode none --runs 1 --no-calibrate"
LENET="--network lenet --size 28 --classes 3 --backend reference --batch-size 8"
RAMP="--decode none --from 2 --to 2 --runs 1 --duration 2s --batch-size 2 --trainer replay:rate=100"
RESTORE="checkpoint written --bytes 4m --ranks 1 --writes 1 --reads 1 --chunk 32k --iodepth 1 --reader pread"
for lie in drop-nothing read-flip read-zeros read-long io-stuck; do
    drop='' content=
    case $lie in
    drop-nothing) words="the cache should be cold" drop=--drop-caches content=$words ;;
    io-stuck) words="only 0.0%" drop=--drop-caches=strict content="only 0.0%" ;;
    *) words="record " content="content differs from what was written" ;;
    esac
    told $lie "$words" run $READ $READS $drop
    told $lie "$words" run $READ $READS $drop --beside "--batch-size 8"
    told $lie "$words" train $READ $LENET --epochs 1 $drop
    told $lie "$words" ramp $READ $RAMP ${drop:+--drop-caches}
    [ "$drop" ] || told $lie "$words" infer $READ $LENET
    told $lie "$content" $RESTORE
done
told io-stuck "only 0.0%" size --measure set --read-sizes 4k --depths 1 --measure-time 50ms
told sync-nothing "synced, but the devices wrote" checkpoint written --bytes 4m --ranks 1 --writes 2 --reads 0 --writer pwrite

group freezer && FREEZER=$GROUP || FREEZER=
group cpu && CPU=$GROUP || CPU=
number=0
for lie in half double stop freeze quota drop; do
    number=$((number + 1))
    for command in run train evaluate infer net net_beside size ramp beside write restore monitor verify pack; do
        case $command:$lie in
        size:drop | ramp:drop | monitor:drop | verify:drop | pack:drop) continue ;; # say nothing of caches
        esac
        number=$((number + 1))
        [ $((number % 3)) = 0 ] || [ "${IOBENCH_LONG-}${CELLS-}" ] || continue
        cell $command $lie
    done
done
finish
