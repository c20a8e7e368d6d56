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

int gather_notices(struct ranks *ranks, struct result *result)
{
    const uint32_t count = ranks->place.ranks;

    if (count == 1)
        return 0;
    struct notices_report *mine = memory_zeroed(sizeof *mine);
    struct notices_report *all = memory_array(count, sizeof *all);
    int code = ranks_meet(ranks, mine && all ? 0 : -ENOMEM, NULL);
    if (code == 0) {
        mine->count = result->notice_count;
        memcpy(mine->texts, result->notices, sizeof mine->texts);
        memcpy(mine->degraded, result->degraded_reason, sizeof mine->degraded);
        code = ranks_gather(ranks, mine, sizeof *mine, all);
    }
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        bool good = all[i].count <= RESULT_NOTICES &&
                    memchr(all[i].degraded, 0, sizeof all[i].degraded) != NULL;
        for (uint32_t k = 0; good && k < all[i].count; k++)
            good = memchr(all[i].texts[k], 0, sizeof all[i].texts[k]) != NULL;
        if (!good)
            code = fail(EPROTO, "a rank sent impossible notices: use the same build on all nodes");
    }
    for (uint32_t i = 1; code == 0 && i < count && ranks->place.rank == 0; i++) {
        for (uint32_t k = 0; k < all[i].count; k++) {
            const char *text = all[i].texts[k];
            char others[48] = "";
            uint32_t below = 0, above = 0;
            for (uint32_t other = 0; other < count; other++)
                if (other != i && has(&all[other], text))
                    ++*(other < i ? &below : &above);
            if (above)
                snprintf(others, sizeof others, " and %u other%s", above, above == 1 ? "" : "s");
            if (below == 0) /* else that rank's notice names this one */
                result_notice(result, "rank %u on %s%s: %s", i, ranks->peers[i].host, others, text);
        }
        if (all[i].degraded[0])
            result_degraded(result, "rank %u on %s: %.160s", i, ranks->peers[i].host,
                            all[i].degraded);
    }
    free(all);
    free(mine);
    return code;
}
