/* SPDX-License-Identifier: Apache-2.0
 * Cache states of a job's nodes, as one label: the worst. */
#include "tests/unit/unit.h"

#include "pipeline/result/result.h"
#include "ranks/plugins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 3 };

static struct result_cold found[NODES];
static enum result_cache labels[NODES]; /* of each node, as gathered */

/* One rank per node. */
static int fake_gather(void *state, const void *mine, uint64_t bytes, void *all)
{
    for (uint32_t i = 0; i < NODES; i++) {
        uint8_t *message = (uint8_t *)all + i * bytes;
        struct result_rank rank;
        memcpy(message, mine, bytes);
        memcpy(&rank, message, sizeof rank);
        rank.rank = rank.node = i;
        snprintf(rank.host, sizeof rank.host, "host%u", (unsigned)i);
        memcpy(message, &rank, sizeof rank);
        memcpy(message + sizeof rank, &found[i], sizeof found[i]);
    }
    return 0;
}

static enum result_cache gather(struct result_run *run)
{
    struct ranks_ops fake = ranks_none; /* but for what others send */
    struct ranks ranks = {.ops = &fake, .place = {.ranks = NODES, .nodes = NODES}};

    fake.gather = fake_gather;
    *run = (struct result_run){0};
    assert_int_equal(gather_cold(&ranks, &found[0], run), 0);
    assert_int_equal(run->node_count, NODES);
    for (uint32_t i = 0; i < NODES; i++)
        labels[i] = run->nodes[i].cold.state;
    free(run->nodes);
    return run->cold.state;
}

static void the_worst_node_is_told(void **unused)
{
    struct result_run run;

    for (uint32_t i = 0; i < NODES; i++)
        found[i] = (struct result_cold){.metadata_dropped = true, .resident_bytes = i};
    assert_int_equal(gather(&run), RESULT_CACHE_COLD);
    assert_int_equal(run.cold.resident_bytes, 3);
    found[1].metadata_dropped = false;
    assert_int_equal(gather(&run), RESULT_CACHE_DATA_COLD);
    assert_false(run.cold.metadata_dropped);
    found[1].pages = RESIDENCY_WARM;
    snprintf(found[1].reason, sizeof found[1].reason, "mapped");
    assert_int_equal(gather(&run), RESULT_CACHE_WARM);
    assert_string_equal(run.cold.reason, "host1: mapped");
    /* Not hidden by a node whose state is unknown. */
    found[2].pages = RESIDENCY_UNVERIFIED;
    assert_int_equal(gather(&run), RESULT_CACHE_WARM);
    assert_string_equal(run.cold.reason, "host1: mapped");
    found[1].pages = RESIDENCY_COLD;
    assert_int_equal(gather(&run), RESULT_CACHE_UNVERIFIED);
    assert_false(run.cold.metadata_dropped); /* of any node */
}

/* Rank 0 asks the server on behalf of all. */
static void the_server_is_that_of_all(void **unused)
{
    struct result_run run;

    for (uint32_t i = 0; i < NODES; i++)
        found[i] = (struct result_cold){.metadata_dropped = true};
    found[0].server.state = SERVER_UNVERIFIED;
    assert_int_equal(gather(&run), RESULT_CACHE_CLIENT_COLD);
    assert_int_equal(labels[2], RESULT_CACHE_CLIENT_COLD);
    found[2].metadata_dropped = false;
    assert_int_equal(gather(&run), RESULT_CACHE_CLIENT_COLD);
    assert_int_equal(run.cold.server.state, SERVER_UNVERIFIED);
    found[0].server.state = SERVER_WARM;
    assert_int_equal(gather(&run), RESULT_CACHE_WARM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_node_is_told),
        cmocka_unit_test(the_server_is_that_of_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
