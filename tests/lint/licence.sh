#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source names its licence in its first line (scripts: in their second).
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046 # file names have no blanks
    awk 'FNR > 2 { nextfile }
        /SPDX-License-Identifier: Apache-2.0/ { says[FILENAME] = 1 }
        END {
            for (i = 1; i < ARGC; i++)
                if (!(ARGV[i] in says))
                    print ARGV[i] ":1: the first line must say SPDX-License-Identifier: Apache-2.0"
        }' $(texts | grep -vE '\.md$|/NEWS$|^NEWS$|^man/iobench') /dev/null | grep -v ^/dev/null
}

bad base/x.c 'int x;'
bad tests/cli/x.sh '#!/bin/sh
echo'
good base/x.c '/* SPDX-License-Identifier: Apache-2.0 */'
good tests/cli/x.sh '#!/bin/sh
# SPDX-License-Identifier: Apache-2.0'
lint_tree
