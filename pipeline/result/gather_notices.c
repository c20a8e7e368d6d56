/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 prints what ranks have to say: a node that reads, decodes or computes in another way than
 * asked for is slower than the others, and says so on its own ranks only.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "pipeline/result/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct notices_report {
    uint32_t count;
    char texts[RESULT_NOTICES][RESULT_NOTICE_BYTES];
    char degraded[sizeof((struct result *)0)->degraded_reason];
};

static struct notices_report *describe(const struct result *result)
{
    struct notices_report *report = memory_zeroed(sizeof *report);

    if (!report)
        return NULL;
    report->count = result->notice_count;
    memcpy(report->texts, result->notices, sizeof report->texts);
    memcpy(report->degraded, result->degraded_reason, sizeof report->degraded);
    return report;
}

static int check(const struct notices_report *report)
{
    bool good = report->count <= RESULT_NOTICES &&
                memchr(report->degraded, 0, sizeof report->degraded) != NULL;

    for (uint32_t i = 0; good && i < report->count; i++)
        good = memchr(report->texts[i], 0, sizeof report->texts[i]) != NULL;
    return good ? 0
                : fail(EPROTO, "a rank sent impossible notices: use the same build on all nodes");
}

/* Apart from numbers: what each rank found of its own share is one notice. */
static bool is_alike(const char *one, const char *other)
{
    static const char number[] = "0123456789.,";

    do {
        one += strspn(one, number);
        other += strspn(other, number);
        if (*one != *other)
            return false;
    } while (*one++ && *other++);
    return true;
}

static bool has(const struct notices_report *report, const char *text)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (is_alike(report->texts[i], text))
            return true;
    return false;
}

/* Add a rank's notice unless a lower rank has it. */
static void tell(const struct ranks *ranks, const struct notices_report *all, uint32_t rank,
                 const char *text, struct result *result)
{
    char others[48] = "";
    uint32_t count = 0;

    for (uint32_t i = 0; i < rank; i++)
        if (has(&all[i], text))
            return;
    for (uint32_t i = rank + 1; i < ranks->place.ranks; i++)
        count += has(&all[i], text);
    if (count)
        snprintf(others, sizeof others, " and %u other%s", count, count == 1 ? "" : "s");
    result_notice(result, "rank %u on %s%s: %s", rank, ranks->peers[rank].host, others, text);
}

int gather_notices(struct ranks *ranks, struct result *result)
{
    const uint32_t count = ranks->place.ranks;

    if (count == 1)
        return 0;
    struct notices_report *mine = describe(result);
    struct notices_report *all = memory_array(count, sizeof *all);
    int code = ranks_meet(ranks, mine && all ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = ranks_gather(ranks, mine, sizeof *mine, all);
    for (uint32_t i = 0; code == 0 && i < count; i++)
        code = check(&all[i]);
    for (uint32_t i = 1; code == 0 && i < count && ranks->place.rank == 0; i++) {
        for (uint32_t k = 0; k < all[i].count; k++)
            tell(ranks, all, i, all[i].texts[k], result);
        if (all[i].degraded[0])
            result_degraded(result, "rank %u on %s: %.160s", i, ranks->peers[i].host,
                            all[i].degraded);
    }
    free(all);
    free(mine);
    return code;
}
