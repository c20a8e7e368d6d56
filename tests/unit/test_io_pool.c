/* SPDX-License-Identifier: Apache-2.0
 * Resident mapped pages are borrowed without a thread; others need one. */
#include "tests/unit/unit.h"

#include "base/atomic.h"
#include "readers/io_pool.h"
#include "tests/unit/reader_set.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = 4, PIECE = 4000 };

static struct counter with_a_thread;

static void lend_slowly(struct io_task *task)
{
    uint64_t map_bytes = task->handle->map_bytes;
    uint64_t left = task->offset < map_bytes ? map_bytes - task->offset : 0;

    counter_add(&with_a_thread, 1);
    borrow_pages(task, task->handle->map + task->offset,
                 left < task->bytes ? (uint32_t)left : task->bytes);
}

static bool lend_quickly(void *pagemap, struct io_task *task)
{
    return borrow_resident(*(int *)pagemap, task, task->handle->map + task->offset);
}

static struct io_pool *open_pool(int *pagemap)
{
    struct reader_config site = {.catalog = set.catalog, .depth = DEPTH};
    struct io_pool_settings settings = {.config = &site,
                                        .flags = HANDLES_MAP,
                                        .work = lend_slowly,
                                        .at_once = lend_quickly,
                                        .state = pagemap};
    struct io_pool *pool;
    uint32_t alignment;

    *pagemap = zero_copy_open();
    with_a_thread = (struct counter){0};
    assert_int_equal(io_pool_create(&pool, &settings, &alignment), 0);
    return pool;
}

static void close_pool(struct io_pool *pool, int pagemap)
{
    io_pool_destroy(pool);
    if (pagemap >= 0)
        close(pagemap);
}

/* Read and compare part of the first shard. Return whether a thread was needed. */
static bool used_a_thread(struct io_pool *pool, uint64_t offset, int *result)
{
    struct read_request request = {.offset = offset, .bytes = PIECE, .needed = PIECE}, *done;
    uint64_t before = counter_get(&with_a_thread);

    assert_int_equal(io_pool_submit(&pool, &request), 0);
    int count = io_pool_reap(&pool, &done, 1, 0);
    if (count == 0)
        count = io_pool_reap(&pool, &done, 1, PATIENCE_NS);
    assert_int_equal(count, 1);
    *result = request.result;
    if (request.result >= 0) {
        assert_int_equal(request.result, PIECE);
        assert_memory_equal(request.data, set.content[0] + offset, PIECE);
        io_pool_release(&pool, &request);
    }
    return counter_get(&with_a_thread) > before;
}

static void what_is_mapped_is_lent_at_once(void **unused)
{
    int pagemap, result;
    struct io_pool *pool = open_pool(&pagemap);

    assert_true(used_a_thread(pool, 0, &result)); /* this opens the file */
    for (uint64_t offset = 0; offset + PIECE <= set_sizes[0]; offset += 10001) {
        /* The kernel may be migrating or reclaiming a page at that moment. */
        uint32_t tries = pagemap < 0 ? 1 : 1000;
        while (used_a_thread(pool, offset, &result) && --tries > 0)
            ;
        assert_int_equal(tries == 0, pagemap < 0);
    }
    close_pool(pool, pagemap);
}

/* An access would raise SIGBUS. */
static void truncated_pages_are_not_borrowed(void **unused)
{
    static const uint32_t ends[] = {300000, 492000}; /* pages before, and in its page */
    const uint32_t offset = 120 * 4096;
    char *path = set_path(0);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int pagemap, result;
        struct io_pool *pool = open_pool(&pagemap);
        used_a_thread(pool, offset, &result);
        used_a_thread(pool, offset, &result);
        assert_int_equal(truncate(path, ends[i]), 0);
        for (int turn = 0; turn < 2; turn++) { /* in the second its page is mapped again */
            assert_true(used_a_thread(pool, offset, &result));
            assert_int_equal(result, -ESTALE);
        }
        close_pool(pool, pagemap);
        set_write(0);
        set_index();
    }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mapped_is_lent_at_once),
        cmocka_unit_test(truncated_pages_are_not_borrowed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
