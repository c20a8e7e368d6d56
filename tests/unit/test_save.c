/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cmd/checkpoint/save.h"

#include <errno.h>
#include <unistd.h>

enum { DEPTH = 4, CHUNK = 8192 };

/* A disk that has written a chunk as soon as it is given it, and what it saw. */
static struct {
    uint32_t completed[DEPTH], bytes[DEPTH], count; /* and not reaped */
    uint32_t submits, late;                         /* with completions that nobody had reaped */
    bool broken;                                    /* answers nothing any more */
} disk;

static int disk_open(void *state, const struct writer_config *config,
                     char engine[WRITER_ENGINE_BYTES])
{
    engine[0] = '\0';
    return 0;
}

static void disk_close(void *state) {}

static void disk_submit(void *state, const struct writer_request *request)
{
    disk.submits++;
    disk.late += disk.count > 0;
    disk.completed[disk.count] = request->index;
    disk.bytes[disk.count++] = request->bytes - request->from;
}

static int disk_reap(void *state, struct writer_completion *done, uint64_t wait_ns)
{
    assert_non_null(state);
    if (disk.broken)
        return fail(EIO, "broken");
    if (disk.count == 0)
        return 0;
    disk.count--;
    *done = (struct writer_completion){disk.completed[disk.count], (int)disk.bytes[disk.count],
                                       clock_now_ns()};
    return 1;
}

static const struct writer_ops writer_disk = {.plugin = {.name = "disk", .state_size = 1},
                                              .open = disk_open,
                                              .close = disk_close,
                                              .submit = disk_submit,
                                              .reap = disk_reap};

/* Write a checkpoint of one rank to the disk. */
static int save_one(struct rank_figures *figures, struct rank_buffers *buffers)
{
    struct model_request request = {.bytes = 300000};
    struct model_files files;
    struct snapshot snapshot;
    struct snapshot_store store;

    *buffers = (struct rank_buffers){.ranks = 1, .depth = DEPTH, .chunk_bytes = CHUNK};
    assert_int_equal(model_choose("8b", &request.model), 0);
    assert_int_equal(model_list(&request, &files), 0);
    assert_int_equal(snapshot_plan(&snapshot, &files, CHUNK, false), 0);
    free(files.list);
    snapshot.number = 1;
    assert_int_equal(snapshot_open(&store, folder_path("checkpoints"), true), 0);
    assert_int_equal(snapshot_begin(&store, &snapshot), 0);
    assert_int_equal(rank_buffers_create(buffers), 0);
    struct save save = {.store = &store,
                        .snapshot = &snapshot,
                        .buffers = buffers,
                        .writer = &writer_disk.plugin,
                        .figures = figures};
    const int code = save_run(&save);
    snapshot_abandon(&store, 1);
    snapshot_close(&store);
    snapshot_release(&snapshot);
    return code;
}

/* Else its latency would be that of filling the chunks after it. */
static void a_completed_write_is_found_before_the_next_chunk_is_filled(void **unused)
{
    struct rank_figures figures;
    struct rank_buffers buffers;

    assert_int_equal(save_one(&figures, &buffers), 0);
    assert_true(disk.submits > DEPTH);
    assert_int_equal(disk.late, 0);
    assert_int_equal(figures.latency_ns.count, disk.submits);
    rank_buffers_destroy(&buffers);
}

/* Its writes may still be under way: their memory stays. */
static void a_writer_that_breaks_is_closed_once(void **unused)
{
    struct rank_figures figures;
    struct rank_buffers buffers;

    disk.broken = true;
    assert_int_equal(save_one(&figures, &buffers), -EIO);
    assert_true(buffers.is_held);
    rank_buffers_destroy(&buffers);
    disk.broken = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_completed_write_is_found_before_the_next_chunk_is_filled),
        cmocka_unit_test(a_writer_that_breaks_is_closed_once),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
