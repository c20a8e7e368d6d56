# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Files that stay in the page cache although other tests drop it; sourced. HELD: a file made meanwhile.
HELD=${HELD:-held}

hold_mapped() { # GLOB: keep these files in the page cache, mapped by process $HOLDER, until it is killed
    rm -f "$HELD"
    python3 -c 'import glob, mmap, os, sys, time
maps = []
for name in glob.glob(sys.argv[1]):
    with open(name, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        sum(maps[-1][::4096])
open(sys.argv[3], "w").close()
while os.getppid() == int(sys.argv[2]): time.sleep(0.1)' "$1" $$ "$HELD" &
    HOLDER=$!
    while [ ! -e "$HELD" ] && kill -0 "$HOLDER" 2>/dev/null; do sleep 0.05; done
}

release_held() { # and wait until they are mapped no more
    kill "$HOLDER"
    wait "$HOLDER" 2>/dev/null || :
}
