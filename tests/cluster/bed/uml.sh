# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# User-mode Linux guests: the kernel is a process that can read but not change this machine's files.
# Fast (no emulated processor); one CPU per guest; no RDMA.
# shellcheck source=tests/cluster/bed/bed.sh
. "$(dirname "$0")/bed/bed.sh"

UML=$IOBENCH_GUESTS/uml
[ -x "$UML/usr/bin/linux.uml" ] || skip "no user-mode Linux in $IOBENCH_GUESTS; './bootstrap cluster' fetches it"
export TMPDIR="${BED_MEMORY:-/dev/shm}" # guests' memory: files that are mapped executable

# Preloaded into the kernels; without a compiler they run where the CPU has no AMX.
UML_PRELOAD=''
if ${CC:-cc} -D_GNU_SOURCE -O2 -shared -fPIC -o "$T/whole_registers.so" "$BED/whole_registers.c" 2>"$T/cc"; then
    UML_PRELOAD=$T/whole_registers.so
elif grep -qw amx_tile /proc/cpuinfo; then
    skip "on CPUs with AMX user-mode Linux needs whole_registers.c: $(cat "$T/cc")"
fi

uml_guest() { # NAME MEMORY [IMAGE]: boot it; /dev/ubda is the image
    bed_name=$1
    bed_address=$(address_of "$bed_name")
    bed_interface=$(bed_tap "${bed_address##*.}")
    LD_PRELOAD=$UML_PRELOAD "$UML/usr/bin/linux.uml" mem="$2" rootfstype=hostfs rootflags=/ ro init="$BED/uml_init.sh" \
        ${3:+"ubda=$3"} "vec0:transport=tap,ifname=$bed_interface,depth=128,gro=1" \
        con=null con0=null,fd:1 quiet umid="$bed_name" uml_dir="$T/" \
        BED_NAME="$bed_name" BED_ADDRESS="$bed_address" BED_MODULES="$IOBENCH_GUESTS/uml" BED="$BED" \
        >"$T/$bed_name.console" 2>&1 </dev/null &
    started "$bed_name" $!
}
