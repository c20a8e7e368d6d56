#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two network namespaces with an sshd each stand for two hosts: mpirun starts one job on both by ssh, and a killed
# rank of the other host ends it. Only with IOBENCH_LONG=1.
# shellcheck source=tests/cluster/cluster.sh
. "$(dirname "$0")/cluster.sh"

[ -n "${IOBENCH_LONG-}" ] || skip "starts two sshd: set IOBENCH_LONG=1"
SSHD=$(command -v sshd || ls /usr/sbin/sshd 2>/dev/null) || skip "sshd is not installed (package openssh-server)"
make_hosts 2

ssh-keygen -q -t ed25519 -N '' -f key || die "no key"
ssh-keygen -q -t ed25519 -N '' -f host_key || die "no key"
cp key.pub authorized
cat >sshd_config <<END
HostKey $T/host_key
AuthorizedKeysFile $T/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
PidFile none
END
printf '*.invalid %s\n' "$(cat host_key.pub)" | sed "s/^[^ ]*/$NET.*/" >known
cat >ssh_config <<END
Host *
IdentityFile $T/key
IdentitiesOnly yes
UserKnownHostsFile $T/known
GlobalKnownHostsFile /dev/null
BatchMode yes
LogLevel ERROR
END
mkdir -p /run/sshd
for host in 1 2; do
    # Its own host name and shared memory.
    ip netns exec "$BRIDGE-$host" unshare -u -m sh -c "hostname host$host && mount -t tmpfs tmpfs /dev/shm &&
        exec '$SSHD' -D -f '$T/sshd_config' -E '$T/sshd$host.log'" &
    daemons="${daemons-} $!"
done
for host in 1 2; do
    tries=0
    until ip netns exec "$BRIDGE-1" ssh -F ssh_config "$NET.$host" true 2>ssh.log; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || die "no ssh to host$host: $(cat ssh.log "sshd$host.log")"
        grep -q "account .* is locked\|Missing privilege separation" "sshd$host.log" 2>/dev/null &&
            skip "sshd lets root not in: $(tail -n 1 "sshd$host.log")"
        sleep 0.1
    done
done

# shellcheck disable=SC2086 # words
hosts() { # COMMAND...: one rank on each, started from host1
    if is_open_mpi; then
        set -- --host "$NET.1:1,$NET.2:1" --bind-to none --mca plm_rsh_agent "ssh -F $T/ssh_config" --mca plm rsh \
            --mca btl self,vader,tcp --mca btl_tcp_if_include "$NET.0/24" --mca oob_tcp_if_include "$NET.0/24" "$@"
    else
        printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$T/ssh_config" >agent
        chmod +x agent
        set -- -hosts "$NET.1,$NET.2" -ppn 1 -launcher ssh -launcher-exec "$T/agent" "$@"
    fi
    ip netns exec "$BRIDGE-1" unshare -u sh -c 'hostname host1 && exec "$@"' sh timeout 600 "$MPIRUN" -n 2 "$@"
}
expect 0 hosts "$IOBENCH" doctor --launch
says "2 ranks on 2 nodes" "node host1" "node host2"
expect 0 hosts "$IOBENCH" net --to 8 --repeats 2 --repeat-time 1ms
says "valid, 2 ranks on 2 nodes"

hosts "$IOBENCH" net --repeats 10000 --repeat-time 100ms >log 2>&1 &
job=$!
while ! grep -q "measuring 2 ranks" log && kill -0 $job 2>/dev/null; do sleep 0.05; done
victim=
for pid in $(ip netns pids "$BRIDGE-2"); do
    [ "$(cat "/proc/$pid/comm")" != iobench ] || victim=$pid
done
kill -KILL "${victim:?no rank on host2: $(cat log)}"
wait $job && die "succeeded without a rank: $(cat log)"
grep -q "$NET.2\|host2" log || die "nobody names the killed rank: $(cat log)"
echo "mpirun starts a job by ssh"
