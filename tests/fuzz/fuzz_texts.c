/* SPDX-License-Identifier: Apache-2.0
 * The texts that users write or pass on: job files, step-time profiles, results for compare,
 * series. Each input is taken for all of them. */
#include "tests/fuzz/fuzz.h"

#include "base/fail.h"
#include "cmd/jobfile.h"
#include "pipeline/job.h"
#include "report/compare.h"
#include "report/load.h"
#include "report/picture.h"
#include "report/report.h"
#include "trainer/profile.h"

static void try_jobfile(const char *text, size_t count)
{
    struct jobfile jobfile;

    fail_clear();
    int code = jobfile_parse("x.ini", text, count, &jobfile);
    FUZZ_CHECK(code == 0 || *fail_reason());
    for (size_t i = 0; code == 0 && i < jobfile.section_count; i++) {
        struct job job = {0};
        if (jobfile.sections[i].global)
            continue;
        FUZZ_CHECK(option_defaults(job_options, &job) == 0);
        jobfile_apply(&jobfile, i, job_options, &job);
        option_release(job_options, &job);
    }
    jobfile_release(&jobfile);
}

static void try_profile(const char *text, size_t count)
{
    struct profile profile;

    fail_clear();
    int code = profile_parse("x.csv", text, count, &profile);
    FUZZ_CHECK(code ? *fail_reason() != 0 : profile.count > 0);
    profile_release(&profile);
}

static void try_result(const char *text, size_t count)
{
    json_t *document = load_parse("x.json", text, count);
    struct comparison comparison;

    if (document) {
        const json_t *job = json_array_get(json_object_get(document, "jobs"), 0);
        FUZZ_CHECK(compare_jobs(job, job, &comparison) == 0);
        FUZZ_CHECK(comparison.figures[0].a.count == comparison.figures[0].b.count);
        timeline_destroy(report_timeline_load("x.json", json_object_get(job, "series")));
    }
    json_decref(document);
}

static void draw(struct timeline *timeline)
{
    const struct picture_node node = {"x", timeline};
    char *script = NULL;
    size_t bytes = 0;
    FILE *stream = timeline ? open_memstream(&script, &bytes) : NULL;

    if (stream) {
        fail_clear();
        FUZZ_CHECK(picture_write(stream, "", &node, 1) == 0 || *fail_reason());
        fclose(stream);
    }
    free(script);
    timeline_destroy(timeline);
}

/* Texts without a NUL inside; the CSV is cut into pieces. */
static void try_series(char *text)
{
    fail_clear();
    struct timeline *lines = report_lines_load("x", text);
    FUZZ_CHECK(lines || !*text || *fail_reason());
    draw(lines);
    fail_clear();
    struct timeline *series = report_series_load("x.csv", text);
    FUZZ_CHECK(series || *fail_reason());
    draw(series);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = malloc(count + 1);

    FUZZ_CHECK(text);
    memcpy(text, bytes, count);
    text[count] = '\0';
    try_jobfile(text, count);
    try_profile(text, count);
    try_result(text, count);
    try_series(text);
    free(text);
    return 0;
}
