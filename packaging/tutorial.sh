#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tutorial.sh FOLDER [SUITE]: run the commands of docs/tutorial.md on a bare system (packaging/bare.sh; bookworm by
# default), and print them with their output and times.
set -eu
# shellcheck disable=SC2016 # the shell on the bare system expands it
exec "$(dirname "$0")/bare.sh" "$1" "${2:-bookworm}" '
    rm -rf /data
    sed -n "s/^    \\$ //p" docs/tutorial.md >../commands
    while read -r command; do
        printf "    $ %s\n" "$command"
        start=$(date +%s%N)
        sh -c "$command" </dev/null 2>&1 | sed "s/^/    /; s/ *$//"
        echo "    [$((($(date +%s%N) - start) / 100000000)) tenths of a second]"
    done <../commands'
