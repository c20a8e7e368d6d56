# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the tests with several ranks; sourced, never run.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

# shellcheck disable=SC2034 # for the test that sources this
RANKS=$(dirname "$IOBENCH")/tests/cluster/ranks
with_mpi || skip "no $MPIRUN, or a build without MPI or with a sanitizer, under which Open MPI leaks"
# Ubuntu 26.04 packages Open MPI's launcher without its texts: it names neither itself nor the rank that was killed.
is_mute() { "$MPIRUN" --version 2>&1 | grep -q "couldn't open the help file"; }
is_open_mpi() { is_mute || "$MPIRUN" --version | grep -q "Open MPI"; }

# No special hardware.
mpi() { # COUNT COMMAND...
    count=$1
    shift
    if is_open_mpi; then
        set -- --mca btl self,vader "$@"
    fi
    "$MPIRUN" -n "$count" "$@"
}

# The first rank runs what stands before the dashes, the second what stands behind. Colons, mpirun's own way, crash that of
# Open MPI 5.0.
mpi_pair() { # COMMAND... -- COMMAND...
    # shellcheck disable=SC2016 # the shell of each rank expands it
    mpi 2 sh -c 'rank=0
        for word; do
            shift
            if [ "$word" = -- ]; then rank=$((rank + 1)); continue; fi
            [ $rank != "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" ] || set -- "$@" "$word"
        done
        exec "$@"' sh "$@"
}

# Make a bridge, and set its name, BRIDGE, and its subnet, NET.x, from the benchmark range (RFC 2544), less what
# iobench itself takes for emulated nodes. The name is the claim: other tests may run, or have been killed.
claim_bridge() {
    subnet=$(($$ % 498 + 2))
    for _ in $(seq 498); do
        # shellcheck disable=SC2034 # NET is for the test
        BRIDGE=iob$subnet NET=198.$((18 + subnet % 2)).$((subnet / 2))
        ip link add "$BRIDGE" type bridge 2>/dev/null && return
        ip link show "$BRIDGE" >/dev/null 2>&1 || break
        subnet=$(((subnet - 1) % 498 + 2))
    done
    skip "no bridge can be made here"
}

# Make network namespaces that stand for hosts: BRIDGE-1, BRIDGE-2 ... with the addresses NET.1, NET.2 ... on a
# bridge, whose own is NET.254. They go when the test ends, with the processes in `daemons`.
make_hosts() { # COUNT
    [ "$(id -u)" = 0 ] || skip "network namespaces need root"
    command -v ip >/dev/null || skip "ip (iproute2) is not installed"
    HOSTS=$1
    claim_bridge
    # shellcheck disable=SC2034 # cli.sh calls it
    CLEANUP=remove_hosts
    ip addr add "$NET.254/24" dev "$BRIDGE"
    ip link set "$BRIDGE" up
    for host in $(seq "$HOSTS"); do
        ip netns add "$BRIDGE-$host" 2>/dev/null || skip "no network namespace can be made here"
        ip link add "v$host$BRIDGE" type veth peer name eth0 netns "$BRIDGE-$host" || skip "no veth can be made here"
        ip link set "v$host$BRIDGE" master "$BRIDGE" up
        ip -n "$BRIDGE-$host" addr add "$NET.$host/24" dev eth0
        ip -n "$BRIDGE-$host" link set eth0 up
        ip -n "$BRIDGE-$host" link set lo up
    done
}

# Run as many ranks of COMMAND as there are hosts, one on each, with the host's network, name and shared memory;
# in $T. Needs Open MPI.
on_hosts() { # COMMAND...
    cat >agent <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do case \$1 in -l | -p | -o) shift ;; esac; shift; done
host=\${1##*.}
shift
exec ip netns exec $BRIDGE-\$host unshare -u -m sh -c \\
    "hostname host\$host; mount -t tmpfs tmpfs /dev/shm; cd $T; exec sh -c \"\\\$*\"" sh "\$@"
END
    chmod +x agent
    timeout 600 "$MPIRUN" -n "$HOSTS" --host "$(seq -s , -f "$NET.%g:1" "$HOSTS")" --bind-to none \
        --mca plm_rsh_agent "$T/agent" --mca btl self,vader,tcp --mca btl_tcp_if_include "$NET.0/24" \
        --mca oob_tcp_if_include "$NET.0/24" "$@"
}

remove_hosts() {
    for pid in ${daemons-}; do kill "$pid" 2>/dev/null; done
    for host in $(seq "$HOSTS"); do ip netns del "$BRIDGE-$host" 2>/dev/null; done
    ip link del "$BRIDGE" 2>/dev/null
}

# Print the last rank of a background job: its launcher may start it indirectly.
last_rank() { # PROCESS
    rank=$(ps -eo pid=,ppid=,comm= | awk -v job="$1" '
        { parent[$1] = $2; if ($3 == "iobench") ranks[++count] = $1 }
        END { for (i = 1; i <= count; i++) {
                  for (p = ranks[i]; p in parent && p != job; p = parent[p]);
                  if (p == job) found = ranks[i]
              }
              print found }')
    [ -n "$rank" ] || die "no rank was found below $MPIRUN: $(cat log)"
    echo "$rank"
}
