# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Data sets of the experiments and their server; sourced, never run, after uml.sh or qemu.sh.

# Samples of 100 KB on $T/disk.img, the same in all formats; written on the host, where writing is
# fast.
make_sets() { # SAMPLES FORMAT:SHARDS...
    set_source="synthetic:count=$1,classes=10,mean=100k,seed=5"
    shift
    for set; do
        "$IOBENCH" pack "$set_source" "$T/disk/${set%:*}" -f "${set%:*}" -s "${set#*:}" \
            >"$T/pack" 2>&1 || die "$(cat "$T/pack")"
        set_source=$T/disk/${set%:*}
    done
    truncate -s 640M disk.img
    mke2fs -q -F -t ext4 -d disk disk.img
    rm -rf disk
}

boot_server() { # of user-mode Linux
    uml_guest server 1024M "$T/disk.img"
    await server
    must server "mount /dev/ubda /mnt/disk"
    export_folder server /mnt/disk
}

# One table of epochs for all cases; rows of an earlier run of this case are removed.
begin_case() { # NAME
    [ -e "$OUT/epochs.csv" ] || echo case,node,epoch,cache_before_run,seconds,samples_per_s,delivered_MB,from_storage_MB,io_wait_percent >"$OUT/epochs.csv"
    sed -i "/^$1-/d" "$OUT/epochs.csv"
}

end_case() { # NAME RESULT
    python3 "$BED/over_time.py" "$OUT/$1" "$2" >"$T/epochs" || die "$1"
    tee -a "$OUT/epochs.csv" <"$T/epochs"
}
