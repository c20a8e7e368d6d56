#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A folder includes itself and the folders named after it here. Siblings never meet.
. "$(dirname "$0")/lint.sh"

allowed() {
    case $1 in
    base) echo ;;
    dataset | kernels | telemetry | ranks) echo base ;;
    cachectl) echo base telemetry ;;
    readers | formats | shuffle) echo base dataset ;;
    decode) echo base kernels ;;
    trainer) echo base kernels ranks ;;
    pack) echo base dataset readers formats ;;
    pipeline) echo base ranks dataset readers formats shuffle decode trainer telemetry cachectl ;;
    report) echo base pipeline ;;
    cmd | bench | tests) echo "$FOLDERS" ;;
    esac
}

lint() {
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
good readers/x.c '#include "dataset/catalog.h"
#include "readers/reader.h"
/* #include "formats/format.h" */'
good pipeline/x.c '#include "cachectl/evict.h"'
lint_tree
