#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Only registries (registry.c, FAMILY_registry.c) test the results of configure; disabled parts are
# not compiled.
. "$(dirname "$0")/lint.sh"

lint() {
    # shellcheck disable=SC2046 # no source has a blank in its name
    grep_code '^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)[^a-z].*HAVE_|^[ \t]*#[ \t]*ifn?def[ \t]*HAVE_' \
        'HAVE_ is for registries; leave a part out in local.mk' \
        $(sources '*.c' '*.h' '*.cu' | grep -v '[/_]registry\.c$')
}

bad readers/x.c '#ifdef HAVE_URING'
bad base/x.h '# if defined(HAVE_URING) && 1'
bad base/x.h '#elif HAVE_LMDB'
good readers/registry.c '#ifdef HAVE_URING'
good trainer/backend_registry.c '#ifdef HAVE_DNNL'
good readers/x.c '/* #ifdef HAVE_URING */'
lint_tree
