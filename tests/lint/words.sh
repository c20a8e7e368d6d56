#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No marks of unfinished work, and no private paths.
. "$(dirname "$0")/lint.sh"

MARKS='(^|[^A-Z_a-z])(TO''DO|FIX''ME|XX''X|HA''CK)([^A-Z_a-z]|$)'
PLACES='/wo''rk/|/tmp/w''t|/tmp/mer''ge|/tmp/bri''ef|/ro''ot/|/ho''me/[a-z]'

lint() {
    # shellcheck disable=SC2046
    grep -nHE "$MARKS|$PLACES" $(texts) /dev/null | sed 's/$/   <- unfinished, or a private path/'
}

bad base/x.c "/* TO""DO: later */"
bad docs/x.md "see /wo""rk/here"
bad tests/x.sh "cd /ho""me/me"
good base/x.c '/* what is to be done, is done */'
lint_tree
