/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader and a reader that has few files, takes no read, or answers none: a run ends with all
 * records or with a reason, and never waits for nothing; and it reads on as soon as memory or files
 * come back.
 */
#include "tests/unit/unit.h"

#include "base/atomic.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pipeline/engine/batches.h"
#include "pipeline/loader/loader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 400, RECORD_BYTES = 3000, SLOTS = 300, BATCH = 16, DEPTH = 8 };

/* ---- storage whose records hold the number of their shard ---- */

static struct {
    bool zero_copy, refuses, silent;
    uint32_t files;  /* limit on reads plus borrowed mappings; more are refused; 0: none */
    bool keeps_last; /* keep the last read until another is submitted or all have come */
} storage;

static struct counter submitted, waiting; /* reads; 1 while the reader waits, keeping its last */
static struct gate unanswered;            /* address of a silent reader's request */

struct test_reader {
    struct read_request *held[DEPTH];
    uint32_t count;
    struct counter borrowed; /* mapped pages: I/O thread acquires, loader releases */
    struct flag woken;
};

static int test_open(void *state, const void *settings, const struct reader_config *site,
                     struct reader_traits *traits)
{
    traits->zero_copy = storage.zero_copy;
    return 0;
}

static void test_close(void *state) {}

static int test_submit(void *state, struct read_request *request)
{
    struct test_reader *reader = state;

    if (storage.refuses || reader->count == DEPTH ||
        (storage.files && reader->count + counter_get(&reader->borrowed) >= storage.files))
        return -EAGAIN;
    reader->held[reader->count++] = request;
    counter_add(&submitted, 1);
    if (storage.silent)
        gate_raise(&unanswered, (uintptr_t)request);
    return 0;
}

/* True while the last read is kept. Ends only when woken or when all reads have come. */
static bool keeps_last(struct test_reader *reader)
{
    if (!storage.keeps_last || reader->count != 1)
        return false;
    counter_add(&waiting, 1);
    while (counter_get(&submitted) < SHARDS && !flag_get(&reader->woken))
        usleep(100);
    counter_sub(&waiting, 1);
    flag_clear(&reader->woken);
    return counter_get(&submitted) < SHARDS;
}

static int test_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct test_reader *reader = state;
    uint32_t count = 0;

    if (storage.silent || wait_ns == 0) { /* late, so that several are in flight */
        usleep((useconds_t)(wait_ns / 1000));
        return 0;
    }
    if (keeps_last(reader))
        return 0;
    while (count < max && reader->count > (count > 0 && storage.keeps_last)) {
        struct read_request *request = reader->held[0]; /* in order: the newest is kept */
        memmove(reader->held, reader->held + 1, --reader->count * sizeof *reader->held);
        uint8_t *bytes = storage.zero_copy ? malloc(request->bytes) : request->buffer;
        memset(bytes, (int)(request->shard % 251), request->bytes);
        request->data = bytes;
        request->result = (int)request->bytes;
        if (storage.zero_copy)
            counter_add(&reader->borrowed, 1);
        done[count++] = request;
    }
    return (int)count;
}

static void test_release(void *state, struct read_request *request)
{
    counter_sub(&((struct test_reader *)state)->borrowed, 1);
    free((void *)(uintptr_t)request->data);
}

static void test_wake(void *state)
{
    flag_set(&((struct test_reader *)state)->woken);
}

static const struct reader_ops test_reader = {
    .plugin = {.name = "test", .state_size = sizeof(struct test_reader)},
    .open = test_open,
    .close = test_close,
    .submit = test_submit,
    .reap = test_reap,
    .release = test_release,
    .wake = test_wake,
};

/* ---- one epoch; this thread is decode thread and trainer ---- */

static struct catalog *make_catalog(void)
{
    struct catalog *catalog = catalog_create("test", "test");
    char path[] = "/tmp/iobench-test-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, RECORD_BYTES), 0);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        assert_int_equal(catalog_begin_shard(catalog, path, NULL, 0), 0);
        assert_int_equal(catalog_add(catalog, 0, RECORD_BYTES), 0);
    }
    close(fd);
    unlink(path);
    assert_int_equal(catalog_seal(catalog), 0);
    return catalog;
}

/* Wait until the reader waits: the only progress left is a release. */
static void await_waiting(void)
{
    while (storage.keeps_last && !counter_get(&waiting) && counter_get(&submitted) < SHARDS)
        usleep(100);
}

static uint32_t count_records(struct loader *loader, struct batches *batches,
                              const struct catalog *catalog)
{
    struct fetch *fetches[BATCH];
    struct batch batch;
    const struct batch_account account = {.samples = 1};
    uint32_t records = 0;
    int count;

    while ((count = loader_acquire(loader, fetches, BATCH)) > 0) {
        for (int i = 0; i < count; i++) {
            const uint8_t *bytes = fetches[i]->bytes;
            const uint32_t shard = catalog_extent(catalog, fetches[i]->record)->shard;
            assert_int_equal(bytes[0], shard % 251);
            assert_int_equal(bytes[RECORD_BYTES - 1], shard % 251);
            batches_done(batches, fetches[i]->address / BATCH, 1, &account);
            if (++records % BATCH == 0) {
                assert_int_equal(batches_take(batches, &batch), 1);
                batches_give(batches);
            }
        }
        await_waiting();
        loader_release(loader, fetches, (uint32_t)count);
        if (records == SHARDS)
            loader_finish(loader);
    }
    return records;
}

/* Returns the status of the loader's thread; *records: records received. */
static int run(uint32_t loaders, uint64_t io_timeout_ns, uint32_t *records)
{
    struct catalog *catalog = make_catalog();
    struct plugin_choice reader = {.plugin = &test_reader.plugin}, shuffle = {0};
    struct plan_scope scope = {.catalog = catalog, .seed = 3, .ranks = 1};
    struct plan plan = {0};
    char text[32];

    snprintf(text, sizeof text, storage.keeps_last ? "none" : "buffer:%d", SLOTS);
    assert_int_equal(plugin_choose("shuffle", shuffle_registry, text, &shuffle), 0);
    assert_int_equal(plan_open(&plan, &shuffle, &scope), 0);
    struct batches *batches =
        batches_create(&(struct batches_config){.batch_size = BATCH, .buffers = SHARDS / BATCH});
    const struct read_settings read = {.io_threads = loaders,
                                       .iodepth = DEPTH,
                                       .block_bytes = 4096,
                                       .io_timeout_ns = io_timeout_ns};
    struct loader *loader = loader_create(&(struct loader_config){
        .catalog = catalog,
        .reader = &reader,
        .plan = &plan,
        .sink = batches_sink(batches),
        .read = &read,
        .order = &(struct order_settings){0},
        .memory_bytes = loader_memory_needed(catalog, &plan.traits, &read, 0).least_bytes,
        .alignment = 512,
    });
    assert_non_null(loader);
    batches_reset(batches);
    assert_int_equal(loader_start(loader, NULL), 0);
    loader_begin(loader, 0, 0);
    *records = count_records(loader, batches, catalog);
    int code = loader_join(loader);
    loader_destroy(loader);
    batches_destroy(batches);
    plan_close(&plan);
    plugin_release(&shuffle);
    catalog_destroy(catalog);
    return code;
}

/* ---- tests; most with one loader and with three ---- */

/* The shuffle holds more records than the file limit: records are copied and files released. */
static void mappings_are_released_when_files_run_out(void **unused)
{
    static const uint32_t files[] = {1, 7, SLOTS / 2};
    uint32_t records;

    for (uint32_t loaders = 1; loaders <= 3; loaders += 2)
        for (int i = 0; i < 3; i++) {
            storage.zero_copy = true;
            storage.files = files[i];
            assert_int_equal(run(loaders, 0, &records), 0);
            assert_int_equal(records, SHARDS);
        }
}

static void a_reader_that_takes_no_read_ends_the_run(void **unused)
{
    uint32_t records;

    storage.refuses = true;
    for (uint32_t loaders = 1; loaders <= 3; loaders += 2)
        for (int zero_copy = 0; zero_copy < 2; zero_copy++) {
            storage.zero_copy = zero_copy;
            assert_int_equal(run(loaders, 0, &records), -EMFILE);
            assert_int_equal(records, 0);
            assert_reason(zero_copy ? "mapped" : "ulimit -n");
        }
}

/* Not even the memory of its requests is reused: an answer may come at any time. */
static void a_reader_that_answers_no_read_ends_the_run(void **unused)
{
    uint32_t records;

    storage.silent = true;
    for (uint32_t loaders = 1; loaders <= 3; loaders += 2) {
        unanswered = (struct gate){0};
        assert_int_equal(run(loaders, 20000000, &records), -ETIMEDOUT);
        assert_int_equal(records, 0);
        assert_reason("has not answered");
        /* A late answer: sanitizers see whether its request was freed. */
        ((struct read_request *)(uintptr_t)gate_value(&unanswered))->result = 0;
    }
}

/* The decode thread holds all memory, or all files, and releases them only while the reader waits
 * for a read that the loader issues when notified. */
static void what_comes_back_is_used_at_once(void **unused)
{
    uint32_t records;

    storage.keeps_last = true;
    for (int zero_copy = 0; zero_copy < 2; zero_copy++) {
        storage.zero_copy = zero_copy;
        storage.files = zero_copy ? 4 : 0;
        counter_sub(&submitted, counter_get(&submitted));
        assert_int_equal(run(1, 0, &records), 0);
        assert_int_equal(records, SHARDS);
    }
}

static int start(void **unused)
{
    alarm(PATIENCE_S);
    memset(&storage, 0, sizeof storage);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(mappings_are_released_when_files_run_out, start),
        cmocka_unit_test_setup(what_comes_back_is_used_at_once, start),
        cmocka_unit_test_setup(a_reader_that_takes_no_read_ends_the_run, start),
        cmocka_unit_test_setup(a_reader_that_answers_no_read_ends_the_run, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
