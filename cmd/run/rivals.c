/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/run/rivals.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/stats.h"
#include "cmd/arguments.h"
#include "pipeline/jobs/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t rivals_count(const char *against)
{
    size_t count = against ? 1 : 0;

    for (; against && *against; against++)
        count += *against == '\n';
    return count;
}

/* Return the line; the caller frees it. */
static char *line_of(const char *against, size_t line)
{
    for (; line; line--)
        against = strchr(against, '\n') + 1;
    char *copy = strndup(against, strcspn(against, "\n"));
    if (!copy)
        fail(ENOMEM, "out of memory");
    return copy;
}

static int parse(char *text, struct job *job)
{
    struct arguments arguments = {0};
    const struct arguments_scope scopes[] = {{.table = job_options, .settings = job}, {0}};
    char **words = memory_array(strlen(text) + 1, sizeof *words);

    if (!words)
        return -ENOMEM;
    int code = arguments_split(text, words);
    if (code >= 0)
        code = arguments_parse(scopes, code, words, &arguments);
    if (code == 0 && arguments.count)
        code = fail(EINVAL, "'%s' is not an option", arguments.operands[0]);
    if (code == 0 && (job->against || job->beside))
        code = fail(EINVAL, "--against or --beside inside another job's options");
    free(arguments.operands);
    free(words);
    return code;
}

int rivals_apply(const char *option, const char *against, size_t line, struct job *job)
{
    char *options = line_of(against, line), *copy = options ? strdup(options) : NULL;

    free(job->output.label);
    free(job->against);
    free(job->beside);
    job->output.label = job->against = job->beside = NULL;
    int code = copy ? parse(copy, job) : fail(ENOMEM, "out of memory");
    if (code) {
        code = fail(-code, "%s '%s': %s", option, options ? options : "", fail_reason());
    } else if (!job->output.label) {
        code = option_set(job_options, job, "label", options, option);
    }
    free(copy);
    free(options);
    return code;
}

int rivals_check(const struct job *jobs, size_t count)
{
    const struct job *first = &jobs[0];

    if (job_runs_most(first) > PAIRED_MAX)
        return fail(EINVAL, "%llu runs of --turns %llu each are too many, at most %d in all",
                    (unsigned long long)(job_runs_most(first) / first->turns),
                    (unsigned long long)first->turns, PAIRED_MAX);
    if (count > RUN_JOBS_MAX)
        return fail(EINVAL, "cannot alternate %zu jobs, at most %d", count, RUN_JOBS_MAX);
    for (size_t i = 1; i < count; i++) {
        const struct job *rival = &jobs[i];
        if (rival->runs != first->runs || rival->until_percent != first->until_percent ||
            rival->until_runs != first->until_runs || rival->until_time_ns != first->until_time_ns)
            return fail(
                EINVAL,
                "'%s': alternating jobs must have the same number of runs (--runs, --until)",
                rival->output.label);
        if (rival->turns != first->turns)
            return fail(EINVAL, "'%s': alternating jobs must have the same --turns",
                        rival->output.label);
        if (rival->dry_run != first->dry_run)
            return fail(EINVAL, "'%s': --dry-run must apply to all alternating jobs",
                        rival->output.label);
    }
    return 0;
}
