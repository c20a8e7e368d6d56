#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tutorial.sh FOLDER [SUITE [MIRROR]]: run the commands of docs/tutorial.md on a bare system, and print them with
# their output and times. As root; SUITE is of debootstrap, bookworm by default. FOLDER keeps the system.
set -eu
root=$(mkdir -p "$1" && cd "$1" && pwd) suite=${2:-bookworm} mirror=${3:-http://deb.debian.org/debian}
cd "$(dirname "$0")/.."
[ -e "$root/bin/sh" ] || debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1
for folder in proc sys dev; do
    mountpoint -q "$root/$folder" || mount --rbind --make-rslave "/$folder" "$root/$folder"
done
trap 'umount -l "$root/proc" "$root/sys" "$root/dev"' EXIT
cp /etc/resolv.conf "$root/etc/"
rm -rf "$root/root/iobench" "$root/data"
mkdir "$root/root/iobench"
if [ -e .git ]; then git archive HEAD; else tar -c .; fi | tar -x -C "$root/root/iobench"
sed -n 's/^    \$ //p' docs/tutorial.md >"$root/root/commands"
cat >"$root/root/steps" <<'END'
cd /root/iobench
while read -r command; do
    printf '    $ %s\n' "$command"
    start=$(date +%s%N)
    sh -c "$command" </dev/null 2>&1 | sed 's/^/    /; s/ *$//'
    echo "    [$((($(date +%s%N) - start) / 100000000)) tenths of a second]"
done <../commands
END
chroot "$root" env -i HOME=/root PATH="$PATH" LC_ALL=C.UTF-8 sh /root/steps
