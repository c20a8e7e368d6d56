#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder includes itself and the folders named after it here. Siblings never include each other.
# The same holds for the subfolders of pipeline/.
. "$(dirname "$0")/lint.sh"

allowed() {
    case $1 in
    base) echo ;;
    dataset | kernels | telemetry | ranks | profiles) echo base ;;
    sizing) echo base profiles ;;
    cachectl) echo base telemetry ;;
    fabric) echo base ranks ;;
    readers | formats | shuffle) echo base dataset ;;
    decode) echo base kernels ;;
    trainer) echo base kernels ranks profiles ;;
    pack) echo base dataset readers formats profiles ;;
    pipeline) echo base ranks dataset readers formats shuffle decode trainer telemetry cachectl ;;
    checkpoint) echo base dataset readers ranks telemetry cachectl pipeline ;;
    report) echo base pipeline profiles ;;
    cmd | bench | tests) echo "$FOLDERS" ;;
    esac
}

room_allowed() {
    case $1 in
    settings) echo ;;
    result) echo settings ;;
    loader | evidence) echo settings result ;;
    engine) echo settings result loader evidence ;;
    jobs) echo settings result loader evidence engine ;;
    esac
}

lint_rooms() {
    for path in $(FOLDERS=pipeline sources '*.c' '*.h'); do
        room=${path#pipeline/}
        room=${room%/*}
        # shellcheck disable=SC2046 # one line of names
        may=$(echo "$room" $(room_allowed "$room"))
        code "$path" | sed -n 's|^[ \t]*#[ \t]*include[ \t]*"pipeline/\([^"]*\)".*|\1|p' |
            while read -r header; do
                case " $may " in
                *" ${header%%/*} "*) continue ;;
                esac
                echo "$path: includes \"pipeline/$header\": $room may use: $may"
            done
    done
}

# decode/baseline/ is a library of its own.
lint_library() {
    for path in $(FOLDERS=decode/baseline sources '*.c' '*.h'); do
        code "$path" | sed -n 's|^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*|\1|p' |
            grep -v '^decode/baseline/' | sed "s|.*|$path: includes \"&\": it must build alone|"
    done
}

lint() {
    lint_rooms
    lint_library
    for folder in $FOLDERS; do
        # shellcheck disable=SC2046 # one line of names
        may=$(echo "$folder" $(allowed "$folder"))
        for path in $(FOLDERS=$folder sources '*.c' '*.h' '*.cu'); do
            code "$path" | sed -n 's/^[ \t]*#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' |
                while read -r header; do
                    case " $may " in
                    *" ${header%%/*} "*) continue ;; # folder/file.h
                    esac
                    echo "$path: includes \"$header\": write folder/file.h; $folder may use: $may"
                done
        done
    done
}

bad base/x.c '#include "dataset/catalog.h"'
bad readers/x.c '#include "formats/format.h"'
bad pipeline/x.h '  #  include "report/text.h"'
bad cmd/x.c '#include "x.h"'
bad pipeline/loader/x.c '#include "pipeline/engine/batches.h"'
bad pipeline/result/x.h '#include "pipeline/jobs/run.h"'
bad pipeline/x.c '#include "pipeline/loader/loader.h"'
bad decode/baseline/x.c '#include "base/bytes.h"'
good readers/x.c '#include "dataset/catalog.h"
#include "readers/reader.h"
/* #include "formats/format.h" */'
good pipeline/evidence/x.c '#include "cachectl/evict.h"'
good pipeline/engine/x.c '#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"'
lint_tree
