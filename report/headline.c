/* SPDX-License-Identifier: Apache-2.0
 * Sentences of the table that need no page. */
#include "report/report.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "report/words.h"

#include <inttypes.h>

const char *report_headline(const struct result *result, const struct summary *summary, char *text)
{
    const size_t size = REPORT_HEADLINE_BYTES;

    if (!result->valid)
        snprintf(text, size, "INVALID: %s", escape_shown(result->invalid_reason));
    else if (summary->all.skipped > 0)
        snprintf(text, size, "DEGRADED: %" PRIu64 " %s skipped", summary->all.skipped,
                 summary->all.skipped == 1 ? "record was" : "records were");
    else if (*result->degraded_reason)
        snprintf(text, size, "DEGRADED: %s", result->degraded_reason);
    else
        snprintf(text, size, "valid, %s, %u %s of %" PRIu64 " %s%s",
                 summary_cache_name(summary->cache), summary->runs,
                 summary->runs == 1 ? "run" : "runs", result->job->epochs,
                 result->job->epochs == 1 ? "epoch" : "epochs",
                 result->hints.were_made ? ", the first of which made entry points" : "");
    return text;
}

const char *report_entry_points(const struct result *result, char *text)
{
    const struct result_hints *hints = &result->hints;
    char images[WORDS_BYTES], took[WORDS_BYTES], wrote[WORDS_BYTES], kept[WORDS_BYTES];
    const int used =
        snprintf(text, REPORT_HEADLINE_BYTES,
                 "of %s images noted in the first epoch, in %s of its decode threads; ",
                 words_count(hints->images, images), words_duration(hints->decode_ns, took));

    if (hints->path[0])
        snprintf(text + used, REPORT_HEADLINE_BYTES - (size_t)used,
                 "of %s images in %s, written in %s after it",
                 words_count(hints->kept_images, kept), hints->path,
                 words_duration(hints->keep_ns, wrote));
    else
        snprintf(text + used, REPORT_HEADLINE_BYTES - (size_t)used, "NOT written: %s",
                 hints->reason);
    return text;
}

const char *report_hints_memory(const struct result *result, char *text)
{
    char bytes[32];

    text[0] = '\0';
    if (result->hints.memory_bytes)
        snprintf(text, REPORT_HEADLINE_BYTES, "; %s at most for entry points",
                 bytes_text(result->hints.memory_bytes, bytes, sizeof bytes));
    return text;
}

void report_verdict(json_t *document, const struct result *evidence)
{
    json_t *notices = json_array();

    json_object_set_new(document, "valid", json_boolean(evidence->valid));
    json_put_text(document, "invalid_reason", evidence->valid ? NULL : evidence->invalid_reason);
    json_object_set_new(document, "degraded", json_boolean(evidence->degraded_reason[0]));
    json_put_text(document, "degraded_reason",
                  evidence->degraded_reason[0] ? evidence->degraded_reason : NULL);
    for (uint32_t i = 0; i < evidence->notice_count; i++)
        json_array_append_new(notices, json_text(evidence->notices[i]));
    json_object_set_new(document, "notices", notices);
}
