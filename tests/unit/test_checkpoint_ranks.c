/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of a team of ranks: what is collected of figures, written, read, and left. */
#include "tests/unit/folder.h"
#include "tests/unit/golden.h"
#include "tests/unit/team.h"

#include "cmd/checkpoint/checkpoint.h"

#include <dirent.h>

#define S(seconds) ((uint64_t)((double)(seconds)*1e9))

/* ---- figures of three ranks on two nodes ---- */

static int collect(struct ranks *ranks)
{
    static const struct rank_figures figures[] = {
        {.line = {0, .bytes = 1000, .synced_bytes = 1000, .wall_ns = S(2), .sync_ns = S(0.5)}},
        {.line = {1, .bytes = 3000, .synced_bytes = 3000, .wall_ns = S(5), .sync_ns = S(1.5)}},
        {.line = {2, .bytes = 2000, .synced_bytes = 1500, .wall_ns = S(3), .sync_ns = S(0.25)}}};
    const uint32_t rank = ranks->place.rank;
    struct checkpoint_rank each[3] = {0};
    struct checkpoint_result result = {.each = each, .ranks = 3};
    struct rank_figures mine = figures[rank];
    struct checkpoint_shared shared = {.result = &result,
                                       .ranks = ranks,
                                       .buffers = {.ranks = 1},
                                       .first_rank = rank,
                                       .figures = &mine};
    /* Both ranks of the first node see its one disk: 900 bytes, not 1,800. */
    const struct storage_bytes written = {.process_known = true,
                                          .process_write_bytes = UINT64_C(10) << rank,
                                          .device_known = true,
                                          .device_write_bytes = rank == 2 ? 700 : 900};
    struct checkpoint_row row = {0};

    histogram_add_many(&mine.latency_ns, 1000, rank + 1); /* of 1, 2 and 3 writes */
    const int code = checkpoint_collect(&shared, 3, &written, &row);
    if (code == 0 && rank == 2) {
        assert_int_equal(row.bytes, 6000);        /* 1000 + 3000 + 2000 */
        assert_int_equal(row.synced_bytes, 5500); /* 1000 + 3000 + 1500 */
        assert_int_equal(row.wall_ns, S(5));
        assert_int_equal(row.slowest, 1);
        assert_int_equal(row.median_ns, S(3));
        assert_int_equal(row.fastest_ns, S(2));
        assert_int_equal(row.sync_ns, S(1.5));
        assert_int_equal(row.latency_ns.count, 6);
        assert_equal(row.process_bytes, 70);  /* 10 + 20 + 40 */
        assert_equal(row.device_bytes, 1600); /* 900 + 700 */
        assert_int_equal(checkpoint_durability(&row), CHECKPOINT_NOT_DURABLE);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(each[i].written, figures[i].line.bytes);
            assert_int_equal(each[i].write_ns, figures[i].line.wall_ns);
            assert_int_equal(each[i].read + each[i].read_ns, 0);
            assert_string_equal(each[i].host, i == 2 ? "host1" : "host0");
        }
    }
    result_destroy(&result.evidence);
    return code;
}

static void three_ranks_on_two_nodes(void **unused)
{
    struct team team = {.ranks = 3, .per_node = 2, .act = collect};

    team_run(&team);
    for (int i = 0; i < 3; i++)
        assert_int_equal(team.codes[i], 0);
}

static void durable_takes_a_sync_and_the_devices(void **unused)
{
    static const struct {
        uint64_t synced_bytes;
        double device_bytes;
        enum checkpoint_durability durability;
    } rows[] = {{999, 5000, CHECKPOINT_NOT_DURABLE},
                {1000, 5000, CHECKPOINT_DURABLE},
                {1000, 1000, CHECKPOINT_DURABLE},
                {1000, 999, CHECKPOINT_UNVERIFIED},
                {1000, NAN, CHECKPOINT_UNVERIFIED}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct checkpoint_row row = {.bytes = 1000,
                                           .synced_bytes = rows[i].synced_bytes,
                                           .device_bytes = rows[i].device_bytes};
        assert_int_equal(checkpoint_durability(&row), rows[i].durability);
    }
}

/* ---- whole checkpoints ---- */

static struct checkpoint_job job;

static void print_rows(const char *what, const struct checkpoint_row *rows, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        fprintf(golden, "  %s %u: %llu bytes, %llu synced, %llu damaged, %llu requests\n", what,
                rows[i].number, (unsigned long long)rows[i].bytes,
                (unsigned long long)rows[i].synced_bytes, (unsigned long long)rows[i].damaged,
                (unsigned long long)rows[i].latency_ns.count);
}

static int write_and_read(struct ranks *ranks)
{
    struct checkpoint_result result;
    const int code = checkpoint_run(&job, ranks, &result);

    if (code == 0 && ranks->place.rank == 0) {
        fprintf(golden, "  %u ranks of %u processes on %u nodes, %llu steps\n", result.ranks,
                result.processes, result.nodes, (unsigned long long)result.steps);
        print_rows("write", result.writes, result.write_count);
        print_rows("read", result.reads, result.read_count);
        for (uint32_t i = 0; i < result.ranks; i++)
            fprintf(golden, "  %u on %s: %llu, %llu\n", result.each[i].rank, result.each[i].host,
                    (unsigned long long)result.each[i].written,
                    (unsigned long long)result.each[i].read);
    }
    checkpoint_destroy(&result);
    return code;
}

/* Checkpoints that are there: how many. */
static unsigned count_left(void)
{
    struct dirent *entry;
    unsigned count = 0;
    DIR *folder = opendir(job.path);

    while (folder && (entry = readdir(folder)))
        count += strstr(entry->d_name, "checkpoint-") != NULL;
    if (folder)
        closedir(folder);
    return count;
}

static void processes_share_a_checkpoint(void **unused)
{
    char folder[32];

    golden_begin();
    for (int i = 0; i < 4; i++) {
        job = (struct checkpoint_job){.model.bytes = 1 << 19,
                                      .chunk_bytes = 16384,
                                      .depth = 2,
                                      .reader = "pread",
                                      .sync = i == 1,
                                      .verify = i != 3,
                                      .is_single = i == 1,
                                      .is_async = i == 3,
                                      .step_ns = i == 3 ? 1000000 : 0,
                                      .interval = 2,
                                      .writes = i == 2 ? 3 : 2,
                                      .reads = 0,
                                      .keep = i == 2 ? 2 : 1,
                                      .leave = i == 2,
                                      .seed = 5,
                                      .rank_shift = (uint64_t)i};
        assert_int_equal(model_choose("8b", &job.model.model), 0);
        snprintf(folder, sizeof folder, "shared%d", i);
        fprintf(golden, "%s\n", folder);
        job.path = folder_path(folder);
        struct team team = {.ranks = i == 2 ? 3 : 4,
                            .per_node = 2,
                            .act = write_and_read,
                            .clock = TEAM_PROMPT,
                            .step_ns = 10000};
        team_run(&team);
        team_print(&team, golden);
        fprintf(golden, "  %u left\n", count_left());
    }
    golden_end("checkpoint-ranks.txt");
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ranks_on_two_nodes),
        cmocka_unit_test(durable_takes_a_sync_and_the_devices),
        cmocka_unit_test(processes_share_a_checkpoint),
    };

    alarm(PATIENCE_S);
    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
