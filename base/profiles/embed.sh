#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Write the profiles as C, so that the program needs no files: embed.sh SOURCE_FOLDER PROFILE...
set -eu
source=$1
shift
printf '/* Made by base/profiles/embed.sh. */\n#include "base/profiles/profiles.h"\n\n#include <stddef.h>\n\n'
printf 'const struct profile_shipped profile_shipped[] = {\n'
for path; do # base/profiles/FAMILY/NAME.ini
    name=${path##*/}
    family=${path%/*}
    printf '    {"%s", "%s",\n' "${family##*/}" "${name%.ini}"
    sed 's/\\/\\\\/g; s/"/\\"/g; s/^/     "/; s/$/\\n"/' "$source/$path"
    printf '    },\n'
done
printf '    {NULL, NULL, NULL},\n};\n'
