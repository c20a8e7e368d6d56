/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/keep_hints.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/sidecar.h"
#include "decode/decoder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct keeping {
    const struct catalog *catalog;
    struct hints *made;
    struct result_hints *told;
};

/* ---- from all ranks ---- */

enum { MESSAGE_BYTES = 1 << 28 }; /* at most in one message */

/* Sum up what was made, and move it to rank 0: of one rank after the other, so that one message at
 * a time is in memory. */
static int collect_hints(struct ranks *ranks, const struct hinting *hinting,
                         struct result_hints *told)
{
    const uint32_t rank = ranks->place.rank;
    double sums[] = {(double)hinting->records, (double)hinting->images,
                     (double)counter_get(&hinting->ns)};
    int code = ranks_sum(ranks, sums, 3);

    for (uint32_t from = 1; code == 0 && from < ranks->place.ranks; from++) {
        uint8_t *raw = NULL;
        size_t packed = 0;
        if (rank == from && !(raw = hints_pack(hinting->made, 0, HINT_ABSENT, &packed)))
            code = -ENOMEM;
        double size = (double)packed;
        code = ranks_meet(ranks, code, NULL);
        if (code == 0)
            code = ranks_sum(ranks, &size, 1);
        const uint64_t bytes = (uint64_t)size;
        if (code == 0 && rank == 0)
            raw = memory_zeroed(bytes);
        code = code ? code : ranks_meet(ranks, rank == 0 && !raw ? -ENOMEM : 0, NULL);
        for (uint64_t done = 0; code == 0 && (rank == 0 || rank == from) && done < bytes;) {
            const uint64_t part = bytes - done < MESSAGE_BYTES ? bytes - done : MESSAGE_BYTES;
            code = ranks_move(ranks, rank ? 0 : from, raw + done, part, rank);
            done += part;
        }
        if (code == 0 && rank == 0)
            code = hints_unpack(hinting->made, raw, bytes);
        free(raw);
        code = ranks_meet(ranks, code, NULL);
    }
    told->records = (uint64_t)sums[0];
    told->images = (uint64_t)sums[1];
    told->decode_ns = (uint64_t)sums[2];
    return code;
}

/* ---- into the file ---- */

/* Hints of data that were replaced meanwhile would take the place of good ones. */
static int save_hints(void *context)
{
    struct keeping *keeping = context;
    struct result_hints *told = keeping->told;
    struct hints *present = NULL;
    char *path = NULL;
    int code = sidecar_check_shards(keeping->catalog, NULL);

    if (code == 0) {
        /* Another program may have written hints since the job began. A file that cannot be read
         * now would be replaced by one with fewer, but not one that is useless. */
        code = hints_file_load(keeping->catalog, &present);
        if (code == -EINVAL || code == -ESTALE || code == -EPERM || code == -EISDIR)
            code = 0;
    }
    if (present)
        hints_replace(present, keeping->made);
    const struct hints *all = present ? present : keeping->made;
    if (code == 0)
        code = hints_file_save(keeping->catalog, all, &path);
    if (code == 0) {
        told->kept_images = hints_count(all);
        snprintf(told->path, sizeof told->path, "%s", path);
    }
    free(path);
    hints_destroy(present);
    return code;
}

/* ---- once ---- */

int keep_hints(struct session *session, const struct job_plugins *plugins, struct catalog *catalog,
               struct hinting *hinting, int code)
{
    const bool is_kept = code == 0 || (code == -EINTR && session->ranks->place.ranks == 1);
    const uint64_t start_ns = clock_now_ns();
    struct result_hints *told = &session->result->hints;
    struct keeping keeping = {.catalog = catalog, .made = hinting->made, .told = told};
    char reason[FAIL_REASON_BYTES];

    if (!hinting->made)
        return code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    *told = (struct result_hints){.memory_bytes = told->memory_bytes,
                                  .records = hinting->records,
                                  .images = hinting->images,
                                  .decode_ns = counter_get(&hinting->ns)};
    hints_destroy(catalog->hints); /* makes room */
    catalog->hints = NULL;
    int kept = is_kept ? collect_hints(session->ranks, hinting, told) : 0;
    if (is_kept && kept == 0 && session->ranks->place.rank == 0 && told->records > 0)
        kept = ranks_do(session->ranks, "entry points are being written", save_hints, &keeping);
    if (!is_kept || kept)
        snprintf(told->reason, sizeof told->reason, "%.255s",
                 is_kept ? fail_reason() : "the epoch did not end");
    told->were_made = told->records > 0;
    hinting_close(hinting);
    if (code == 0) {
        code = ranks_meet(session->ranks, 0, NULL); /* it is written */
        if (code)
            snprintf(reason, sizeof reason, "%s", fail_reason());
        if (decoder_uses_hints(&plugins->decoder) && hints_file_load(catalog, &catalog->hints) &&
            told->path[0])
            result_notice(session->result, "%s: not used", fail_reason());
        recorder_mark(session->recorder, "entry points", hinting->epoch, start_ns);
    }
    told->keep_ns = clock_now_ns() - start_ns;
    fail_clear();
    const bool tells = session->ranks->place.rank == 0;
    if (code == 0 && tells && !told->were_made)
        result_notice(session->result,
                      "entry points of all images drawn were there: none were made");
    else if (code == 0 && tells && told->path[0] == '\0')
        result_notice(session->result, "entry points were not kept: %s", told->reason);
    if (code == 0)
        return 0;
    /* Interrupted, only the reason is sure to be shown. */
    if (!tells || !told->were_made)
        return fail(code, "%s", reason);
    if (told->path[0])
        return fail(code, "%s; entry points of %llu images are in %s", reason,
                    (unsigned long long)told->kept_images, told->path);
    return fail(code, "%s; entry points were not kept: %s", reason, told->reason);
}
