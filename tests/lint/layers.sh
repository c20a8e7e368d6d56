#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder includes itself and the folders named after it here. Siblings never include each other.
# The same holds for the subfolders of pipeline/ and cmd/.
. "$(dirname "$0")/lint.sh"

allowed() {
    case $1 in
    base) echo ;;
    dataset | kernels | telemetry | ranks) echo base ;;
    cachectl) echo base telemetry ;;
    readers | formats | shuffle) echo base dataset ;;
    decode) echo base kernels ;;
    trainer) echo base kernels ranks ;;
    pipeline) echo base ranks dataset readers formats shuffle decode trainer telemetry cachectl ;;
    report) echo base pipeline ;;
    cmd | bench | docs | tests) echo "$FOLDERS" ;;
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

# What a command needs of another one's room.
command_allowed() {
    case $1 in
    help) echo study ;;
    results) echo pack shuffle ;;
    run | shuffle) echo pack ;;
    size) echo checkpoint ;;
    esac
}

# judge CALL TEXT: of lines "FILE ROOM HEADER ROOM_OF_HEADER" print a fault where CALL, given ROOM,
# does not name the room of the header.
judge() {
    sort -k2 | while read -r path room header of; do
        if [ "$room" != "${previous-}" ]; then
            # shellcheck disable=SC2046 # one line of names
            may=$(echo "$room" $($1 "$room"))
            previous=$room
        fi
        case " $may " in
        *" $of "*) continue ;;
        esac
        echo "$path: includes \"$header\": $2$room may use: $may"
    done
}

# shellcheck disable=SC2046 # file names have no blanks
lint() {
    includes $(sources '*.c' '*.h' '*.cu') >"$LINT_TMP/includes"
    sed -n 's|^pipeline/\([^ ]*\)/[^ ]* pipeline/\([^/ ]*\).*|& \1 \2|p; t; s|^pipeline/\([^ /]*\) pipeline/\([^/ ]*\).*|& \1 \2|p' \
        "$LINT_TMP/includes" | awk '{ print $1, $3, $2, $4 }' | judge room_allowed ''
    sed -n 's|^cmd/\([^ /]*\)/[^ ]* cmd/\([^/ ]*\)/.*|& \1 \2|p' "$LINT_TMP/includes" |
        awk '{ print $1, $3, $2, $4 }' | judge command_allowed 'a room holds what its command needs; '
    # decode/baseline/ is a library of its own.
    sed -n 's|^\(decode/baseline/[^ ]*\) \(.*\)|\1 \2|p' "$LINT_TMP/includes" |
        awk '$2 !~ /^decode\/baseline\// { print $1 ": includes \"" $2 "\": it must build alone" }'
    awk '{ from = $1; sub(/\/.*/, "", from); to = $2; if (!sub(/\/.*/, "", to)) to = "-"; print $1, from, $2, to }' \
        "$LINT_TMP/includes" | judge allowed 'write folder/file.h; '
}

bad base/x.c '#include "dataset/catalog.h"'
bad readers/x.c '#include "formats/format.h"'
bad pipeline/x.h '  #  include "report/text.h"'
bad cmd/x.c '#include "x.h"'
bad pipeline/loader/x.c '#include "pipeline/engine/batches.h"'
bad pipeline/result/x.h '#include "pipeline/jobs/run.h"'
bad pipeline/x.c '#include "pipeline/loader/loader.h"'
bad cmd/size/x.c '#include "cmd/sweep/sweep.h"'
bad decode/baseline/x.c '#include "base/bytes.h"'
good readers/x.c '#include "dataset/catalog.h"
#include "readers/reader.h"
/* #include "formats/format.h" */'
good cmd/size/x.c '#include "cmd/command.h"
#include "cmd/size/model.h"'
good pipeline/evidence/x.c '#include "cachectl/cold.h"'
good pipeline/engine/x.c '#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"'
lint_tree
