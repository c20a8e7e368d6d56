/* SPDX-License-Identifier: Apache-2.0
 * Stored time series: CSV tables and the lines of monitor, and charts of both. */
#include "tests/fuzz/fuzz_text.h"

#include "base/fail.h"
#include "report/chart.h"
#include "report/report.h"

static void draw(struct timeline *timeline)
{
    const struct chart_source source = {"x", timeline};
    struct chart chart;

    if (timeline) {
        fail_clear();
        if (chart_make(&chart, CHART_OF_NODES, &source, 1, CHART_BINS) == 0) {
            struct svg svg;
            size_t svg_bytes;
            chart_draw(&svg, "", &chart);
            free(svg_text(&svg, &svg_bytes));
            svg_release(&svg);
            json_decref(chart_json(&chart));
        } else {
            FUZZ_CHECK(*fail_reason());
        }
        chart_release(&chart);
    }
    timeline_destroy(timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = fuzz_text(bytes, count);

    fail_clear();
    struct timeline *lines = report_lines_load("x", text);
    FUZZ_CHECK(lines || !*text || *fail_reason());
    draw(lines);
    fail_clear();
    struct timeline *series = report_series_load("x.csv", text); /* cuts the text into pieces */
    FUZZ_CHECK(series || *fail_reason());
    draw(series);
    free(text);
    return 0;
}
