#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Phrases that are never correct in comments, messages and documents: docs/glossary.md has the
# terms. Only patterns without false hits belong here.
. "$(dirname "$0")/lint.sh"

HABITS='there is no opt''ion|asked wro''ngly|let a net''work|had it the net''work|who wait''ed for whom'
HABITS="$HABITS"'|signs? of li''fe|none was to''ld|was told o''f|is told o''f|tells? o''f |cannot be to''ld'
HABITS="$HABITS"'|the standard out''put|nobody cou''nts|made an''ew|begun an''ew|begins? an''ew|for so lo''ng|so oft''en'
HABITS="$HABITS"'|so many (samp|rec|by|tim|read|thr|proc|bat)'

lint() {
    # shellcheck disable=SC2046
    grep -nHiE "$HABITS" $(texts) /dev/null | sed 's/$/   <- plain English: docs\/glossary.md/'
}

bad base/x.c "/* a rank that gives no sign of li""fe */"
bad docs/x.md "It was asked wro""ngly; nothing was done."
bad tests/x.sh "echo 'a line so oft""en'"
good base/x.c '/* a rank that is unresponsive */'
lint_tree
