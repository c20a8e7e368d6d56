/* SPDX-License-Identifier: Apache-2.0
 * Result files, as for compare and plot; a loaded series can be written, and is then loaded again.
 */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "report/compare.h"
#include "report/report.h"

static void try_series(const json_t *series)
{
    fail_clear();
    struct timeline *timeline = report_timeline_load("x.json", series);

    FUZZ_CHECK(timeline || *fail_reason());
    json_t *written = timeline ? report_timeline(timeline) : NULL;
    if (written) {
        struct timeline *again = report_timeline_load("x.json", written);
        FUZZ_CHECK(again && again->row_count == timeline->row_count);
        timeline_destroy(again);
    }
    json_decref(written);
    timeline_destroy(timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);
    struct comparison comparison;

    fail_clear();
    json_t *document = load_any("x.json", text, count);
    if (document && load_check("x.json", document)) {
        json_decref(document);
        document = NULL;
    }
    FUZZ_CHECK(document || *fail_reason());
    if (document) {
        const json_t *job = json_array_get(json_object_get(document, "jobs"), 0);
        const json_t *other = json_array_get(json_object_get(document, "jobs"), 1);
        const struct compare_group one = {&job, 1}, two = {other ? &other : &job, 1};
        FUZZ_CHECK(compare_groups(&one, &two, &comparison) == 0);
        compare_correct(&comparison, 1);
        json_t *written = compare_json("x", &comparison, 0.05);
        FUZZ_CHECK(written);
        json_decref(written);
        FUZZ_CHECK(compare_groups(&one, &one, &comparison) == 0);
        FUZZ_CHECK(comparison.a.runs == comparison.b.runs);
        try_series(json_object_get(job, "series"));
    }
    json_decref(document);
    free(text);
    return 0;
}
