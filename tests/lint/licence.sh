#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source names its licence in its first line (scripts: in their second).
. "$(dirname "$0")/lint.sh"

lint() {
    for path in $(texts | grep -vE '\.md$|/NEWS$|^NEWS$|^man/iobench'); do
        head -n 2 "$path" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
            echo "$path:1: the first line must say SPDX-License-Identifier: Apache-2.0"
    done
}

bad base/x.c 'int x;'
bad tests/cli/x.sh '#!/bin/sh
echo'
good base/x.c '/* SPDX-License-Identifier: Apache-2.0 */'
good tests/cli/x.sh '#!/bin/sh
# SPDX-License-Identifier: Apache-2.0'
lint_tree
