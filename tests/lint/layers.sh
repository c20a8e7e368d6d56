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
    fabric) echo base kernels ranks ;;
    readers | formats | shuffle) echo base dataset ;;
    decode) echo base kernels ;;
    trainer) echo base kernels ranks profiles ;;
    pack) echo base dataset readers formats profiles decode ;;
    pipeline) echo base ranks dataset readers formats shuffle decode trainer telemetry cachectl ;;
    checkpoint) echo base dataset readers ranks telemetry cachectl pipeline ;;
    report) echo base pipeline profiles ;;
    cmd | bench | examples | tests) echo "$FOLDERS" ;;
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
bad decode/baseline/x.c '#include "base/bytes.h"'
good readers/x.c '#include "dataset/catalog.h"
#include "readers/reader.h"
/* #include "formats/format.h" */'
good pipeline/evidence/x.c '#include "cachectl/evict.h"'
good pipeline/engine/x.c '#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"'
lint_tree
