#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The nfs reader against nfs-ganesha in its own network namespace: correct bytes with NFS 3 and 4.
# The reader waits for a server that is down or unresponsive for a while; if that persists, the
# reader ends with an error message.
# shellcheck source=tests/fault/server.sh
. "$(dirname "$0")/server.sh"

mkdir "$tmp/export/set"
for i in 0 1 2; do
    head -c $((3000000 + i * 12345)) /dev/urandom >"$tmp/export/set/$i"
done

url=nfs://$address$tmp/export/set
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 1 5000 >"$tmp/out" 2>&1 || fault "NFS 3"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "NFS 3 failed"
tests/fault/nfs_reads "nfs://$address/export/set" "$tmp/export/set" 3 1 5000 nfs:2,version=4 \
    >"$tmp/out" 2>&1 || fault "NFS 4"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "NFS 4 failed"

tests/fault/nfs_reads "$url" "$tmp/export/set" 3 1 5000 nfs 4 >"$tmp/out" 2>&1 || fault "4 loaders"
grep -q '; 4 I/O threads' "$tmp/out" || fault "not 4 I/O threads"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "4 loaders failed"

# Down for a second: no error.
(sent 1000000; kill -9 $server; sleep 1) &
breaker=$!
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 8 20000 >"$tmp/out" 2>&1 &
reader=$!
wait $breaker
server=
start
wait $reader || fault "bytes were wrong after the server came back"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "an outage of a second was not survived"
cat "$tmp/out"

# Unresponsive for a second, like an overloaded server: no error.
(sent 1000000; kill -STOP $server; sleep 1; kill -CONT $server) &
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 3 20000 >"$tmp/out" 2>&1 || fault "silence"
grep -q 'reads [1-9][0-9]* errors 0' "$tmp/out" || fault "a silence of a second was not survived"

# Unresponsive for longer than the time-out: an error message.
(sent 1000000; kill -STOP $server; sleep 2; kill -CONT $server) &
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 4 500 >"$tmp/out" 2>&1
grep -q 'errors [1-9].*no answer for 0.5 s\|not responding: the last' "$tmp/out" ||
    fault "no sentence about the silence"
wait $!

# Down for good.
(sent 1000000; kill -9 $server) &
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 4 700 >"$tmp/out" 2>&1 || fault "outage"
grep -q 'errors [1-9].*no answer for 0.7 s' "$tmp/out" || fault "no sentence about the outage"
server=
tests/fault/nfs_reads "$url" "$tmp/export/set" 3 1 1000 >"$tmp/out" 2>&1 && fault "opened without a server"
grep -q 'cannot be reached' "$tmp/out" || fault "no sentence about a server that is away"
echo ok
