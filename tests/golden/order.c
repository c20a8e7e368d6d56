/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the records of epochs of an order, one a line, rank after rank, so that
 * peer_shuffle.py can compare them with those of the original programs.
 *
 * order STRATEGY RECORDS SHARDS SEED EPOCH...
 */
#include "base/fail.h"
#include "shuffle/quality.h"
#include "shuffle/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RECORD_BYTES = 4096, OPS = 256 };

static int print_epoch(struct plan *plan, uint64_t epoch)
{
    uint64_t *held = calloc(plan->traits.slots, sizeof *held);
    struct plan_op ops[OPS];
    int count = held ? plan_begin(plan, epoch) : -1;

    while (count >= 0 && (count = plan_next(plan, ops, OPS)) > 0)
        for (int i = 0; i < count; i++) {
            if (ops[i].kind == PLAN_FETCH)
                held[ops[i].slot] = ops[i].record;
            else
                printf("%" PRIu64 "\n", held[ops[i].slot]);
        }
    free(held);
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: order STRATEGY RECORDS SHARDS SEED EPOCH...\n");
        return 2;
    }
    struct catalog *catalog = outline_create(strtoull(argv[2], NULL, 10),
                                             (uint32_t)strtoul(argv[3], NULL, 10), RECORD_BYTES, 0);
    struct plan_scope scope = {
        .catalog = catalog, .seed = strtoull(argv[4], NULL, 10), .ranks = 1, .batch_size = 32};
    struct plugin_choice choice = {0};
    struct plan plan = {0};
    int code = catalog ? plugin_choose("shuffle", shuffle_registry, argv[1], &choice) : -1;

    if (code == 0)
        code = plan_open(&plan, &choice, &scope);
    for (int i = 5; code == 0 && i < argc; i++)
        code = print_epoch(&plan, strtoull(argv[i], NULL, 10));
    if (code)
        fprintf(stderr, "order: %s\n", fail_reason());
    if (plan.ops)
        plan_close(&plan);
    plugin_release(&choice);
    catalog_destroy(catalog);
    return code != 0;
}
