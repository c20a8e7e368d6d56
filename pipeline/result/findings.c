/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/findings.h"

#include "pipeline/result/result.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char *const finding_keys[FINDING_KINDS] = {[FINDING_SKIPPED] = "skipped_records",
                                                 [FINDING_IMAGE] = "damaged_images",
                                                 [FINDING_LABEL] = "odd_labels",
                                                 [FINDING_EMPTY] = "without_image"};

/* Keep the text if the record is among the first, sorted by record. */
static void name(struct findings_kind *kind, uint64_t record, const char *text)
{
    uint32_t at = 0;

    while (at < kind->named && kind->records[at] < record)
        at++;
    if (at == FINDINGS_NAMED || (at < kind->named && kind->records[at] == record))
        return;
    if (kind->named < FINDINGS_NAMED)
        kind->named++;
    for (uint32_t i = kind->named - 1; i > at; i--) {
        kind->records[i] = kind->records[i - 1];
        memcpy(kind->texts[i], kind->texts[i - 1], FINDING_BYTES);
    }
    kind->records[at] = record;
    snprintf(kind->texts[at], FINDING_BYTES, "%s", text);
}

void findings_note(struct findings *findings, enum finding kind, uint64_t record, const char *text)
{
    assert(kind < FINDING_KINDS);
    findings->kinds[kind].count++;
    name(&findings->kinds[kind], record, text);
}

void findings_add(struct findings *into, const struct findings *from)
{
    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &from->kinds[i];
        into->kinds[i].count += kind->count;
        for (uint32_t k = 0; k < kind->named; k++)
            name(&into->kinds[i], kind->records[k], kind->texts[k]);
    }
}

bool findings_sound(const struct findings *findings)
{
    bool sound = true;

    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &findings->kinds[i];
        sound = sound && kind->named <= FINDINGS_NAMED;
        for (uint32_t k = 0; sound && k < kind->named; k++)
            sound = memchr(kind->texts[k], 0, FINDING_BYTES) != NULL;
    }
    return sound;
}

void findings_tell(const struct findings *findings, const char *where, struct result *result)
{
    static const struct {
        const char *one, *many;
        bool degrades; /* skipped records degrade the result by their own count */
    } words[FINDING_KINDS] = {
        [FINDING_SKIPPED] = {"record was skipped", "records were skipped", false},
        [FINDING_IMAGE] = {"damaged image was decoded as far as it goes",
                           "damaged images were decoded as far as they go", true},
        [FINDING_LABEL] = {"label is not a class number: its sample has none (see --odd-labels)",
                           "labels are not class numbers: their samples have none (see "
                           "--odd-labels)",
                           false},
        [FINDING_EMPTY] = {"sample has no image", "samples have no image", false},
    };

    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &findings->kinds[i];
        const char *what = kind->count == 1 ? words[i].one : words[i].many;
        if (kind->count == 0)
            continue;
        result_notice(result, "%s: %llu %s, the first: %s", where, (unsigned long long)kind->count,
                      what, kind->texts[0]);
        if (words[i].degrades)
            result_degraded(result, "%llu %s", (unsigned long long)kind->count, what);
    }
}
