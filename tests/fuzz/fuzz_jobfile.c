/* SPDX-License-Identifier: Apache-2.0
 * Job files, and the options in their sections. */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "cmd/arguments.h"
#include "pipeline/settings/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);
    struct jobfile jobfile;

    fail_clear();
    int code = jobfile_parse("x.ini", text, count, &jobfile);
    FUZZ_CHECK(code == 0 || *fail_reason());
    for (size_t i = 0; code == 0 && i < jobfile.ini.section_count; i++) {
        struct job job = {0};
        if (jobfile_is_global(&jobfile, i))
            continue;
        FUZZ_CHECK(option_defaults(job_options, &job) == 0);
        fail_clear();
        FUZZ_CHECK(jobfile_apply(&jobfile, i, job_options, &job) == 0 || *fail_reason());
        option_release(job_options, &job);
    }
    jobfile_release(&jobfile);
    free(text);
    return 0;
}
