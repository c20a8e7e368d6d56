#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files are accessed through the safe layer only (base/file.h, base/folder.h, base/draft.h): raw
# calls block on a FIFO, follow a planted link, or remove foreign files; glob(3) aborts if memory
# runs out. Tests and benchmarks are exempt.
. "$(dirname "$0")/lint.sh"

# The safe layer itself; child opens /dev/null, landlock and sandbox paths with O_PATH
# only; residency also checks block devices.
allowed='^(base/(file|folder|draft|child|landlock)\.c|(cachectl/residency|cmd/sandbox)\.c|tests/.*|bench/.*)$'
calls='open|open64|openat|openat2|creat|fopen|fopen64|freopen|opendir|scandir|rename|renameat|renameat2'
calls="$calls|unlink|unlinkat|rmdir|mkdir|mkdirat|mkfifo|mknod|remove|symlink|symlinkat|link|linkat|truncate"
calls="$calls|mkstemp|mkostemp|mkstemps|mkdtemp|tmpfile|tmpnam|tempnam|ftw|nftw|chmod|fchmodat|chown|lchown|fchownat"
calls="$calls|glob|globfree|gzopen|gzopen64|json_load_file|json_dump_file|archive_read_open_filename|archive_read_open_file"

lint() {
    # A member of a struct of operations is called through "." or "->".
    # shellcheck disable=SC2046
    grep_code "(^|[^a-zA-Z0-9_.>])($calls) *\\(" \
        'a raw call on files: use base/file.h, base/folder.h or base/draft.h' \
        $(sources '*.c' '*.h' '*.cu' '*.cpp' | grep -vE "$allowed")
}

bad cmd/x.c 'int f(void) { return open("x", O_RDONLY); }'
bad report/x.c 'FILE *f = fopen(path, "we");'
bad cmd/pack/x.c '    if (unlink(path) || rmdir(path))'
bad formats/x.c 'return rename(from, to);'
bad dataset/x.h 'static inline int f(void) { return !mkstemp(name); }'
bad telemetry/x.c 'DIR *folder = opendir (path);'
bad cmd/pack/x.c 'gzFile file = gzopen(path, "rb");'
bad cmd/x.c 'if (glob(pattern, 0, NULL, &found))'
good base/folder.c 'int fd = openat(folder, name, flags);'
good tests/unit/x.c 'unlink(path);'
good readers/x.c 'int code = file_open(path, O_RDONLY, NULL); /* open(2) */'
good pipeline/x.c 'ops->open(state); ops.rename(from, to); my_open(path); reopen(path); const char *s = "open(x)";'
lint_tree
