# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# A bed: guests with their own kernels on one Ethernet segment, for tests that need real kernels.
# Sourced, never run. README.md in this folder lists requirements and usage.
#
# The test restarts itself in its own network and process namespaces: nothing outside is touched,
# and no guest outlives the test, however it ends.
BED=$(cd "$(dirname "$0")/bed" && pwd)

if [ -z "${BED_INSIDE-}" ]; then
    bed_skip() {
        echo "skipped: $*"
        exit 77
    }
    [ "$(id -u)" = 0 ] || bed_skip "guests with a network need root"
    # A test without NFS sets BED_NEEDS to what it needs instead.
    # shellcheck disable=SC2086 # words
    for bed_tool in ip unshare python3 mke2fs ${BED_NEEDS-mount.nfs exportfs rpc.nfsd rpc.mountd}; do
        command -v $bed_tool >/dev/null || bed_skip "$bed_tool is not installed; './bootstrap cluster' does it"
    done
    BED_INSIDE=1 exec unshare --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi

# shellcheck source=tests/cli/cli.sh
. "$BED/../../cli/cli.sh"
IOBENCH_GUESTS=${IOBENCH_GUESTS:-/var/cache/iobench-guests} # files fetched by kernels.sh
BED_NET=10.98.0
AGENT=$BED/agent.py

ip link set lo up
ip link add bed type bridge 2>/dev/null || skip "no bridge can be made here"
ip addr add $BED_NET.254/24 dev bed
ip link set bed mtu 9000 up

bed_tap() { # NUMBER: prints the name of an interface for a guest
    ip tuntap add mode tap name "guest$1" || die "no tap device can be made here: is there /dev/net/tun?"
    ip link set "guest$1" mtu 9000 master bed up
    echo "guest$1"
}

address_of() { # NAME: guests are addressed by number
    case $1 in
    server) echo $BED_NET.1 ;;
    node*) echo $BED_NET.$((10 + ${1#node})) ;;
    *) die "no guest is called $1" ;;
    esac
}

on() { # NAME COMMAND...: run in a guest; returns its output and exit status
    bed_name=$1
    shift
    python3 "$AGENT" "$(address_of "$bed_name")" "$*"
}

must() { # NAME COMMAND...: the same, and it must succeed
    on "$@" >"$T/must" 2>&1 || {
        cat "$T/must"
        die "failed on $*"
    }
}

await() { # NAME...: wait until they answer; a guest that has died will not
    for bed_name; do
        python3 "$AGENT" wait "$(address_of "$bed_name")" 180 "$(cat "$T/$bed_name.pid")" || {
            tail -n 20 "$T/$bed_name.console"
            die "$bed_name does not come up"
        }
    done
}

started() { # NAME PROCESS: await() asks whether it lives
    echo "$2" >"$T/$1.pid"
}

forget() { # NAME...: drop their page caches
    for bed_name; do
        must "$bed_name" "sync; echo 3 >/proc/sys/vm/drop_caches"
    done
}

forget_command() { # NAME: for --server-drop-cmd, in other guests as well
    echo "python3 $AGENT $(address_of "$1") 'sync; echo 3 >/proc/sys/vm/drop_caches'"
}

check_command() { # NAME FOLDER: for --server-check-cmd
    echo "python3 $AGENT $(address_of "$1") '${IOBENCH%/*}/cachectl/cachectl status --json $2'"
}

# Ranks in guests as one job; mpirun is started in the first of them and must succeed.
BED_TCP="--mca pml ob1 --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none \
    --mca btl_tcp_if_include $BED_NET.0/24"
mpirun_in() { # "NAME..." RANKS_OF_EACH COMMAND [OPTIONS OF MPIRUN: how ranks talk]
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    bed_hosts=''
    for bed_name in $1; do bed_hosts=$bed_hosts,$(address_of "$bed_name"):$2; done
    must "${1%% *}" "timeout ${BED_JOB_S:-600} mpirun --allow-run-as-root --host ${bed_hosts#,} --bind-to none \
        --mca mpi_yield_when_idle 1 --mca plm_rsh_agent $AGENT --mca oob_tcp_if_include $BED_NET.0/24 \
        ${4:-$BED_TCP} $3"
}

# Kernel NFS server: exports its folder $1 to everybody.
export_folder() { # NAME FOLDER
    must "$1" ". $BED/guest.sh; serve_nfs $2"
}

# ---- figures ----

value() { # FILE JQ-LIKE PATH: a number of a JSON document, as jobs.0.runs.0.epochs.1.samples
    python3 - "$1" "$2" <<'END'
import json, sys
at = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    at = at[int(key)] if isinstance(at, list) else at[key]
print(at)
END
}

near() { # WHAT FIGURE TRUTH PERCENT: FIGURE is within PERCENT of TRUTH
    awk -v what="$1" -v figure="$2" -v truth="$3" -v percent="$4" 'BEGIN {
        off = truth ? 100 * (figure - truth) / truth : (figure ? 100 : 0)
        good = figure != "None" && off <= percent && off >= -percent
        printf "%s: %s, %s expected, %+.2f%% (at most %s%%)%s\n", what, figure, truth, off, percent,
            good ? "" : "   <- FAILED"
        exit !good }' || die "$1"
}

at_most() { # WHAT FIGURE LIMIT
    [ "$2" -le "$3" ] || die "$1: $2, at most $3 expected"
    echo "$1: $2, at most $3"
}

counted() { # FILE KEY: sum over the lines of iobench monitor, rates times intervals
    python3 - "$1" "$2" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
print(round(sum((line[sys.argv[2]] or 0) * line["interval_s"] for line in lines)))
END
}
