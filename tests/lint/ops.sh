#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Only a family's wrapper (formats/format.c, ...) calls through its ops: only the wrapper knows
# which members may be NULL.
. "$(dirname "$0")/lint.sh"

# Wrappers.
WRAPPERS='^(formats/format|readers/reader|shuffle/plan|decode/decoder|telemetry/probe|ranks/ranks|dataset/store|cmd/pack/source|cmd/checkpoint/save|cmd/net/transport|trainer/(trainer|backend|exchange))\.c$'
FAMILIES='(format|reader|plan|decoder|probe|trainer|backend|exchange|origin|ranks|transport)'

lint() {
    # shellcheck disable=SC2046
    grep_code "(^|[^a-z_])ops->[a-z_]+\(|(^|[^a-z_])${FAMILIES}_of\([^()]*(\([^()]*\))?[^()]*\)[ ]*->[a-z_]+\(|^[ ]*->[a-z_]+\(" \
        'call the wrapper of the family, not its ops' \
        $(sources '*.c' '*.h' | grep -Ev "^(tests|bench|trainer/cuda)/|$WRAPPERS")
}

bad cmd/pack/x.c 'int x = format_of(row)->detect(path);'
bad cmd/pack/x.c 'int x = format_of(pack->format.plugin)->writable();'
bad cmd/pack/x.c '    code = format_of(target->format)
               ->detect(whole);'
bad readers/x.c 'reader->ops->release(reader->state, request);'
bad cmd/x.c 'ops->index(path);'
good formats/format.c 'return format_of(plugin)->detect(path);'
good trainer/x.c 'const bool on = exchange->ops->on_stream;'
good shuffle/x.c 'next = drops->count(x);'
lint_tree
