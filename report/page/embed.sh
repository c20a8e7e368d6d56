#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh NAME=FILE...: C with the bytes of each file as html_NAME[]; empty without a FILE. Of a
# minified library the pointer to its source map goes: a browser's tools would ask for that file.
set -eu
for pair; do
    file=${pair#*=}
    echo "extern const unsigned char html_${pair%%=*}[];"
    echo "const unsigned char html_${pair%%=*}[] = {"
    [ -z "$file" ] || sed 's|/[/*]# sourceMappingURL=.*||' "$file" | od -An -v -tu1 | sed 's/\([0-9]\)\( \|$\)/\1,\2/g'
    echo "0};"
done
