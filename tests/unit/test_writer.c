/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cmd/checkpoint/save.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

enum { DEPTH = 4, BYTES = 8192, CHUNKS = 37 };

static struct iovec buffers[DEPTH];

static void make_buffers(void)
{
    for (int i = 0; i < DEPTH && !buffers[i].iov_base; i++)
        buffers[i] = (struct iovec){memory_pages(BYTES), BYTES};
}

static int open_writer(struct writer *writer, const char *name)
{
    const struct writer_config config = {
        .buffers = buffers, .depth = DEPTH, .timeout_ns = PATIENCE_NS};

    make_buffers();
    return writer_open(writer, plugin_find(writer_registry, name), &config);
}

/* Write chunk i at its place; the one at CHUNKS - 1 is half. Returns 0 or the first failure. */
static int write_all(struct writer *writer, int fd, uint32_t count)
{
    bool busy[DEPTH] = {false};
    int code = 0;

    for (uint32_t i = 0; (i < count || writer->in_flight) && code == 0;) {
        uint32_t free = 0;
        while (free < DEPTH && busy[free])
            free++;
        if (i < count && free < DEPTH) {
            memset(buffers[free].iov_base, (int)i + 1, BYTES);
            busy[free] = true;
            writer_write(writer, free, fd, i == CHUNKS - 1 ? BYTES / 2 : BYTES,
                         (uint64_t)i * BYTES);
            i++;
            continue;
        }
        int index = writer_wait(writer, PATIENCE_NS, "file");
        if (index >= 0)
            busy[index] = false;
        else if (index != -EAGAIN)
            code = index;
    }
    return code;
}

static void every_writer_writes_every_byte(void **unused)
{
    for (const struct plugin *const *row = writer_registry; *row; row++) {
        struct writer writer;
        char text[CHUNKS * BYTES + 1];
        int fd = open(folder_path((*row)->name), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (open_writer(&writer, (*row)->name)) {
            print_message("%s: %s\n", (*row)->name, fail_reason()); /* refused here */
        } else {
            assert_int_equal(write_all(&writer, fd, CHUNKS), 0);
            assert_int_equal(writer.latency_ns.count, CHUNKS);
            assert_int_equal(pread(fd, text, sizeof text, 0), CHUNKS * BYTES - BYTES / 2);
            for (int i = 0; i < CHUNKS * BYTES - BYTES / 2; i++)
                assert_int_equal(text[i], i / BYTES + 1);
        }
        writer_close(&writer);
        assert_false(writer.is_held);
        close(fd);
    }
}

/* Bytes from any place of a buffer go to theirs in the file, from registered buffers, too. */
static void the_rest_of_a_buffer_is_written_at_its_place(void **unused)
{
    enum { FROM = 1000 };

    make_buffers();
    for (const struct plugin *const *row = writer_registry; *row; row++)
        for (int direct = 0; direct < 2; direct++) {
            const struct writer_config config = {
                .buffers = buffers, .depth = DEPTH, .direct = direct, .timeout_ns = PATIENCE_NS};
            uint8_t text[2 * BYTES + 1], *buffer = buffers[1].iov_base;
            struct writer_completion done;
            struct writer writer;
            int fd = open(folder_path("rest"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
                found = 0;
            for (int i = 0; i < BYTES; i++)
                buffer[i] = (uint8_t)(i % 251);
            if (writer_open(&writer, *row, &config) == 0) {
                writer.ops->submit(
                    writer.state,
                    &(struct writer_request){
                        .fd = fd, .index = 1, .from = FROM, .bytes = BYTES, .offset = BYTES});
                while (found == 0)
                    found = writer.ops->reap(writer.state, &done, PATIENCE_NS);
                assert_int_equal(found, 1);
                assert_int_equal(done.index, 1);
                assert_int_equal(done.result, BYTES - FROM);
                assert_int_equal(pread(fd, text, sizeof text, 0), 2 * BYTES);
                assert_memory_equal(text + BYTES + FROM, buffer + FROM, BYTES - FROM);
                for (int i = 0; i < BYTES + FROM; i++)
                    assert_int_equal(text[i], 0);
            }
            writer_close(&writer);
            close(fd);
        }
}

/* At the file size limit, as on a full disk, a write is short, and the rest of it fails. */
static void a_short_write_is_continued_and_its_failure_reported(void **unused)
{
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3 * BYTES + 1000;
    for (const struct plugin *const *row = writer_registry; *row; row++) {
        struct writer writer;
        int fd = open(folder_path("short"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0); /* the ring adopts the limit */
        if (open_writer(&writer, (*row)->name) == 0) {
            assert_refused(write_all(&writer, fd, 4), -EFBIG, "file: offset");
        }
        writer_close(&writer);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        close(fd);
    }
}

static void a_refused_descriptor_is_a_failure(void **unused)
{
    for (const struct plugin *const *row = writer_registry; *row; row++) {
        struct writer writer;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (open_writer(&writer, (*row)->name) == 0)
            assert_int_equal(write_all(&writer, fd, 1), -EBADF);
        writer_close(&writer);
        close(fd);
    }
}

/* A blocking write has ended when its call returns, however many follow before it is reaped. */
static void a_blocking_write_is_not_as_long_as_those_after_it(void **unused)
{
    struct writer writer;
    int fd = open(folder_path("blocking"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    uint64_t longest_ns = 0;

    assert_int_equal(open_writer(&writer, "pwrite"), 0);
    for (uint32_t i = 0; i < DEPTH; i++) {
        const uint64_t start_ns = clock_now_ns();
        writer_write(&writer, i, fd, BYTES, (uint64_t)i * BYTES);
        const uint64_t took_ns = clock_now_ns() - start_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        clock_sleep_ns(took_ns);
    }
    while (writer.in_flight)
        assert_true(writer_wait(&writer, PATIENCE_NS, "file") >= 0);
    assert_int_equal(writer.latency_ns.count, DEPTH);
    assert_true(writer.latency_ns.maximum <= longest_ns);
    writer_close(&writer);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_writer_writes_every_byte),
        cmocka_unit_test(the_rest_of_a_buffer_is_written_at_its_place),
        cmocka_unit_test(a_short_write_is_continued_and_its_failure_reported),
        cmocka_unit_test(a_refused_descriptor_is_a_failure),
        cmocka_unit_test(a_blocking_write_is_not_as_long_as_those_after_it),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
