#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Only a family refers to its plug-ins by name; other code uses the traits of their ops. Families do
# not see each other, so this checks the folders that join them: no literal is a member's name or
# begins with one, as in "replay:h200", and no file includes the list of members. The default of an
# option is exempt: users see it. A name that is also a word ("none", "files") is refused only in
# lines that choose or compare a plug-in.
. "$(dirname "$0")/lint.sh"

JOINING='cmd pipeline report'
WORDS='archive|block|buffer|cgroup|checksum|cpu|cuda|dataset|disk|epoch|files|gpu|jpeg|memory|mpi|net|network|none|null|pressure|process|reference|shards|synthetic|tar|verbs'
FAMILY='(reader|decoder?|trainer|format|shuffle|source)'

# Print "FOLDER NAME" for each plug-in and each URL scheme.
MEMBERS=$(cd "$SRCDIR" && for folder in dataset decode cmd/net formats cmd/pack ranks readers shuffle telemetry trainer; do
    find "$folder" -name '*.c' -exec cat {} + | tr '\n' ' ' |
        grep -oE '(\.plugin = \{ *\.name|\.scheme) = "[^"]+"|[A-Z]+\( *"[a-z0-9-]+", [a-z_0-9]+_open' |
        sed "s|^[^\"]*\"\([^\"]*\)\".*|$folder \1|"
done | sort -u)
[ "$(echo "$MEMBERS" | wc -l)" -ge 30 ] || { echo "the plug-ins are not found"; exit 1; }

echo "$MEMBERS" >"$LINT_TMP/members"

literals() {
    # shellcheck disable=SC2046 # file names have no blanks
    grep -nHE '"[a-z0-9-]+[":]' $(FOLDERS=$JOINING sources '*.c' '*.h') /dev/null |
        grep -vE '^cmd/net/tcp_|\.fallback = |\.plugin = \{|^[^:]*:[0-9]*: *(/\*|\*)' |
        awk -v words="^($WORDS)\$" -v family="$FAMILY" '
        NR == FNR { folder[NR] = $1; name[NR] = $2; members = NR; next }
        {
            match($0, /^[^:]*:[0-9]*/)
            place = substr($0, 1, RLENGTH)
            for (i = 1; i <= members; i++) {
                literal = "\"" name[i]
                if (index($0, literal "\"") + index($0, literal ":") == 0 || index($0, folder[i] "/") == 1)
                    continue
                if (name[i] ~ words &&
                    $0 !~ "(cmp|find|choose|set)[(][^;]*" family "[^;]*" literal &&
                    $0 !~ family "[a-z_.>-]* = [^;]*" literal &&
                    $0 !~ "[{]\"" family "\", " literal)
                    continue
                print place ": " literal "\" is known to " folder[i] "/ alone: give its ops a trait"
            }
        }' "$LINT_TMP/members" -
}

lint() {
    literals
    # shellcheck disable=SC2046 # file names have no blanks
    grep -nHE '#include "[a-z/]+/plugins.h"' $(FOLDERS=$JOINING sources '*.c' '*.h') /dev/null |
        awk -F: '{
            folder = $1
            sub(/\/[^\/]*$/, "", folder)
            if (!index($3, "\"" folder "/"))
                print $1 ":" $2 ": the list of members is its family'"'"'s alone"
        }'
}

bad pipeline/jobs/x.c 'if (strcmp(plugins->reader.plugin->name, "null") == 0)'
bad pipeline/jobs/x.c '    job.decode = (char[]){"none"};'
bad pipeline/jobs/x.c 'static const char *const names[] = {"nfs", "inflate"};'
bad report/x.c 'return strncmp(decoder, "checksum", 8) == 0;'
bad cmd/x.c 'const char *format = strcmp(format, "auto") == 0 ? "shards" : format;'
bad cmd/x.c 'const char *texts[][2] = {{"decode", "none"}};'
bad cmd/x.c 'snprintf(trainer, sizeof trainer, "replay:h200");'
bad cmd/x.c 'if (strncmp(path, "nfs://", 6) == 0)'
bad cmd/x.c '#include "readers/plugins.h"'
good pipeline/settings/x.c '    {"reader", 0, OPTION_TEXT, FIELD(reader), .fallback = "pread"},'
good pipeline/jobs/x.c 'if (strcmp(phase->name, "epoch") == 0 && !reader->plugin->idle)
/* not "uring" */'
good report/x.c 'put_count(object, "shards", result->shards);'
good readers/x.c 'strcmp(name, "uring"); strcmp(name, "pread");'
good cmd/pack/x.c '#include "cmd/pack/plugins.h"'
lint_tree
