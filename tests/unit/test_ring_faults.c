/* SPDX-License-Identifier: Apache-2.0
 * The io_uring reader on a ring whose completions say what a failing device would: the program is
 * linked with --wrap=uring_enter, so what the kernel answered is changed before the reader looks.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "readers/uring.h"
#include "tests/unit/reader_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { FOR_READS = 0, KIND_SHIFT = 32 }; /* bits of user_data, as tagged by readers/uring.c */

/* How reads are changed from now on. */
static struct {
    int error;                          /* replaces the result of every read; 0: none */
    uint32_t most;                      /* bytes per read; 0: all */
    int after;                          /* first reads to leave unchanged */
    uint32_t changed;                   /* reads changed so far */
    const struct read_request *request; /* with most: the request whose rest is unread */
} plan;

/* Offsets of the reads that the kernel was given, in its order, and how many it had at once. */
static struct {
    uint64_t offsets[8];
    uint32_t count, in_flight, most;
} given;

int __real_uring_enter(struct io_uring *ring, uint64_t wait_ns);
int __wrap_uring_enter(struct io_uring *ring, uint64_t wait_ns);

static void change(struct io_uring_cqe *cqe)
{
    static uint32_t brought; /* of plan.request, so far */

    if (cqe->user_data >> KIND_SHIFT != FOR_READS || cqe->res <= 0 || plan.after-- > 0)
        return;
    if (plan.error) {
        cqe->res = plan.error;
        plan.changed++;
    } else if (plan.most && (uint32_t)cqe->res > plan.most) {
        brought = plan.changed++ ? brought + plan.most : plan.most;
        cqe->res = (int)plan.most;
        memset((uint8_t *)plan.request->buffer + brought, 0xee, plan.request->bytes - brought);
    }
}

static void note_reads(const struct io_uring *ring)
{
    const struct io_uring_sq *sq = &ring->sq;
    const uint32_t most = sizeof given.offsets / sizeof *given.offsets;

    for (unsigned at = sq->sqe_head; at != sq->sqe_tail; at++) {
        const struct io_uring_sqe *sqe = &sq->sqes[at & *sq->kring_mask];
        if (sqe->user_data >> KIND_SHIFT == FOR_READS && given.count < most) {
            given.offsets[given.count++] = sqe->off;
            given.in_flight++;
        }
    }
    if (given.in_flight > given.most)
        given.most = given.in_flight;
}

int __wrap_uring_enter(struct io_uring *ring, uint64_t wait_ns)
{
    note_reads(ring);
    const int code = __real_uring_enter(ring, wait_ns);
    struct io_uring_cqe *cqe;
    unsigned head;

    io_uring_for_each_cqe(ring, head, cqe)
    {
        change(cqe);
        given.in_flight -= cqe->user_data >> KIND_SHIFT == FOR_READS;
    }
    return code;
}

static const char *const readers[] = {"uring", "uring:direct=yes", "uring:registered=no"};
enum { READERS = sizeof readers / sizeof *readers };

/* Returns false if io_uring is not available. */
static bool open_patient(struct run *run, const char *reader, uint64_t timeout_ns)
{
    memset(&plan, 0, sizeof plan);
    assert_int_equal(run_open(run, reader, 8, timeout_ns), 0);
    if (strstr(run->reader.traits.engine, "io_uring,"))
        return true;
    print_message("skipped: %s\n", run->reader.traits.notice);
    run_close(run);
    return false;
}

static bool open_ring(struct run *run, const char *reader)
{
    return open_patient(run, reader, PATIENCE_NS);
}

enum { READS = 8, READ_BYTES = 8192 };

static void read_in_order(struct run *run)
{
    struct read_request *done[READS];

    memset(&given, 0, sizeof given);
    for (uint32_t i = 0; i < READS; i++)
        assert_int_equal(
            reader_submit(&run->reader, run_request(run, i, 0, i * READ_BYTES, READ_BYTES)), 0);
    for (int left = READS, got; left > 0; left -= got) {
        got = reader_reap(&run->reader, done, READS, PATIENCE_NS);
        assert_true(got > 0);
        for (int i = 0; i < got; i++)
            assert_int_equal(done[i]->result, READ_BYTES);
    }
    assert_int_equal(given.count, READS);
    for (uint32_t i = 0; i < READS; i++)
        assert_int_equal(given.offsets[i], i * READ_BYTES);
}

/* Also those that wait until their file is open: to the kernel, others would be reads at random. */
static void reads_start_in_the_order_in_which_they_were_submitted(void **unused)
{
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        if (!open_ring(&run, readers[i]))
            continue;
        read_in_order(&run);
        assert_int_equal(given.most, READS);
        run_close(&run);
    }
}

/* Only of files that are read from front to back, and where the kernel reads far enough. */
static void the_kernel_reads_ahead_of_what_is_read_in_order(void **unused)
{
    static const struct {
        const char *reader;
        bool in_order, may;
    } cases[] = {
        {"uring", true, false},
        {"uring:readahead=auto", true, true},
        {"uring:readahead=yes", true, true},
        {"uring:readahead=no", true, false},
        {"uring:direct=yes,readahead=auto", true, false},
        {"uring", false, false},
        {"uring:readahead=auto", false, false},
        {"uring:readahead=yes", false, false},
    };
    char *path = set_path(0);
    const int fd = open(path, O_RDONLY);
    const uint64_t ahead = read_ahead_bytes("/sys", fd);
    const bool far = ahead >= READ_AHEAD_ENOUGH;
    struct run run;

    print_message("the kernel reads %s ahead here\n", far ? "far" : "not far");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_in_order = cases[i].in_order;
        const bool opened = open_ring(&run, cases[i].reader);
        set_in_order = false;
        if (!opened)
            continue;
        const struct uring *uring = run.reader.state;
        const bool is_random = uring->handles.flags & HANDLES_RANDOM;
        const bool is_asked = strstr(cases[i].reader, "readahead=yes");
        assert_int_equal(uring->bytes_per_file, cases[i].may && far ? ahead : 0);
        assert_int_equal(is_random, !is_asked && !(cases[i].may && far));
        assert_int_equal(strstr(run.reader.traits.engine, ", read-ahead of") != NULL,
                         cases[i].may && far);
        run_close(&run);
    }
    close(fd);
    free(path);
}

/* In KiB, in one of two places. */
static void read_ahead_is_that_of_the_device(void **unused)
{
    char name[64], root[256], device[32], *file = set_path(0);
    const int fd = open(file, O_RDONLY);
    struct stat status;

    assert_int_equal(folder_setup(unused), 0);
    snprintf(root, sizeof root, "%s", folder_path("sys"));
    assert_int_equal(fstat(fd, &status), 0);
    snprintf(device, sizeof device, "%u:%u", major(status.st_dev), minor(status.st_dev));
    assert_int_equal(read_ahead_bytes(root, fd), 0);
    snprintf(name, sizeof name, "sys/dev/block/%s/partition", device);
    folder_put(name, "1\n");
    folder_put("sys/dev/block/bdi/read_ahead_kb", "128\n");
    assert_int_equal(read_ahead_bytes(root, fd), 128 * 1024);
    snprintf(name, sizeof name, "sys/class/bdi/%s/read_ahead_kb", device);
    folder_put(name, "4096\n");
    assert_int_equal(read_ahead_bytes(root, fd), 4096 * 1024);
    close(fd);
    free(file);
    assert_int_equal(folder_teardown(unused), 0);
}

/* The kernel's read-ahead of a file begins small, each time. */
static void a_file_begins_with_one_read(void **unused)
{
    struct read_request *done[READS];
    struct run run;

    if (!open_ring(&run, "uring"))
        skip();
    struct uring *uring = run.reader.state;
    uring->bytes_per_file = READS * READ_BYTES;
    read_in_order(&run);                 /* which also opens the file */
    for (uint32_t i = 0; i < READS; i++) /* from the front again */
        assert_int_equal(
            reader_submit(&run.reader, run_request(&run, i, 0, i * READ_BYTES, READ_BYTES)), 0);
    memset(&given, 0, sizeof given);
    int left = READS - reader_reap(&run.reader, done, READS, PATIENCE_NS);
    assert_int_equal(left, READS - 1);
    assert_int_equal(given.count, 1);
    while (left > 0)
        left -= reader_reap(&run.reader, done, READS, PATIENCE_NS);
    assert_int_equal(given.count, READS);
    assert_true(given.most > 1);
    run_close(&run);
}

static void where_the_kernel_reads_ahead_few_reads_of_a_file_are_under_way(void **unused)
{
    struct run run;

    if (!open_ring(&run, "uring:readahead=yes"))
        skip();
    struct uring *uring = run.reader.state;
    uring->bytes_per_file = 3 * READ_BYTES - 1;
    read_in_order(&run); /* which also opens the file */
    assert_int_equal(given.most, 2);
    uring->bytes_per_file = 1; /* one read always may */
    read_in_order(&run);
    assert_int_equal(given.most, 1);
    run_close(&run);
}

/* Buffered ones: direct reads take no pages. */
static void large_reads_are_given_to_the_kernel_before_the_reap(void **unused)
{
    static const char *const names[] = {"uring", "uring:direct=yes"};
    struct read_request *done[2];
    struct run run;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!open_ring(&run, names[i]))
            continue;
        struct uring *uring = run.reader.state;
        read_in_order(&run); /* which also opens the file */
        assert_int_equal(uring->prepared_bytes, 0);
        assert_int_equal(reader_submit(&run.reader, run_request(&run, 0, 0, 0, READ_BYTES)), 0);
        assert_int_equal(io_uring_sq_ready(&uring->ring), 1);
        uring->prepared_bytes += URING_GROUP_BYTES - 2 * READ_BYTES; /* as if it were larger */
        assert_int_equal(reader_submit(&run.reader, run_request(&run, 1, 0, 0, READ_BYTES)), 0);
        assert_int_equal(io_uring_sq_ready(&uring->ring), i == 0 ? 0 : 2);
        for (uint32_t k = 0; k < 2; k++) /* their time began */
            assert_int_equal(run.requests[k].issue_ns > 0, i == 0);
        for (int left = 2; left > 0;)
            left -= reader_reap(&run.reader, done, 2, PATIENCE_NS);
        assert_int_equal(done[0]->result, READ_BYTES);
        run_close(&run);
    }
}

/* One that does not end is late; those behind it are not. */
static void a_read_does_not_wait_for_a_late_one(void **unused)
{
    struct run run;

    if (!open_patient(&run, "uring", UINT64_C(4000000000)))
        skip();
    struct uring *uring = run.reader.state;
    assert_int_equal(run_read(&run, run_request(&run, 0, 0, 0, READ_BYTES)), READ_BYTES);
    uring->bytes_per_file = READ_BYTES;
    uring->queues[0].reading = READ_BYTES; /* as if it were still in the kernel */
    read_in_order(&run);
    run_close(&run);
}

static void an_error_is_an_error(void **unused)
{
    static const int errors[] = {-EIO, -ENODATA, -EREMOTEIO, -ENOSPC};
    char *path = set_path(0), text[64];
    struct run run;

    for (size_t i = 0; i < READERS * 4; i++) {
        if (!open_ring(&run, readers[i / 4]))
            continue;
        assert_true(run_read(&run, run_request(&run, 0, 0, 0, 5000)) >= 5000);
        plan.error = errors[i % 4];
        assert_int_equal(run_read(&run, run_request(&run, 0, 0, 8192, 5000)), errors[i % 4]);
        assert_int_equal(plan.changed, 1);
        assert_int_equal(run.reader.figures.errors, 1);
        assert_int_equal(run.reader.figures.latency_ns.count, 1); /* a failed read is not counted */
        assert_reason(path);
        snprintf(text, sizeof text, "offset %d", 8192);
        assert_reason(text);
        run_close(&run);
    }
    free(path);
}

/* All bytes arrive in the right places, however short the reads are. */
static void short_reads_are_resumed_where_they_ended(void **unused)
{
    struct run run;

    for (size_t i = 0; i < READERS * 2; i++) {
        if (!open_ring(&run, readers[i / 2]))
            continue;
        struct read_request *request = run_request(&run, i % 2, 0, 4096, 60000);
        plan.most = 16384;
        plan.request = request;
        assert_true(run_read(&run, request) >= (int)request->needed);
        assert_true(plan.changed >= 3);
        assert_int_equal(run.reader.figures.short_reads, plan.changed);
        assert_memory_equal(request->data, set.content[0] + request->offset, request->needed);
        run_close(&run);
    }
}

/* Half of the record is read; the rest fails. */
static void an_error_after_a_short_read_is_an_error(void **unused)
{
    struct run run;

    for (size_t i = 0; i < READERS; i++) {
        if (!open_ring(&run, readers[i]))
            continue;
        struct read_request *request = run_request(&run, 0, 0, 0, 60000);
        plan.most = 32768;
        plan.request = request;
        assert_int_equal(reader_submit(&run.reader, request), 0);
        struct read_request *done;
        while (plan.changed == 0)
            assert_int_equal(reader_reap(&run.reader, &done, 1, 1), 0);
        plan.error = -EIO;
        assert_int_equal(reader_reap(&run.reader, &done, 1, PATIENCE_NS), 1);
        assert_int_equal(done->result, -EIO);
        run_close(&run);
    }
}

/* ---- commands: pieces of a file, in place of those of a disk ---- */

enum { PIECE = 4096 };

static struct {
    uint32_t count;  /* prepared so far */
    uint64_t ends;   /* offset from which on nothing can be chosen */
    int status;      /* of each command; 0: it is read */
    bool is_refused; /* the file */
} commands;

static int check_piece_file(struct uring *uring, struct handle *handle, const char **why)
{
    assert_true(handle->opened);
    *why = commands.is_refused ? "it is refused" : NULL;
    return commands.is_refused ? -EOPNOTSUPP : 0;
}

static int choose_piece(struct uring *uring, struct uring_op *op)
{
    const uint64_t left = op->request->bytes - op->from;

    op->disk_offset = op->request->offset + op->from;
    op->command_bytes = left < PIECE ? (uint32_t)left : PIECE;
    return op->disk_offset < commands.ends ? 0 : -ESTALE;
}

static void prepare_piece(struct uring *uring, const struct uring_op *op, struct io_uring_sqe *sqe)
{
    commands.count++;
    io_uring_prep_read(sqe, op->handle->fd, (uint8_t *)op->request->buffer + op->from,
                       op->command_bytes, op->disk_offset);
}

/* A read that is complete returns its bytes where a command returns 0. */
static int judge_piece(int result, const char **why)
{
    if (result > 0 && commands.status)
        *why = "the disk says so";
    return result > 0 && commands.status ? commands.status : result;
}

static bool open_commands(struct run *run)
{
    static const struct uring_commands pieces = {.check_file = check_piece_file,
                                                 .choose = choose_piece,
                                                 .prepare = prepare_piece,
                                                 .judge = judge_piece};

    memset(&commands, 0, sizeof commands);
    commands.ends = UINT64_MAX;
    if (!open_ring(run, "uring:registered=no"))
        return false;
    ((struct uring *)run->reader.state)->commands = &pieces;
    return true;
}

/* A read larger than a command is read by several, which are no short reads. */
static void a_read_takes_several_commands(void **unused)
{
    struct run run;

    if (!open_commands(&run))
        skip();
    struct read_request *request = run_request(&run, 0, 0, 512, 10 * PIECE + 100);
    assert_int_equal(run_read(&run, request), (int)request->bytes);
    assert_int_equal(commands.count, 11);
    assert_int_equal(run.reader.figures.short_reads, 0);
    assert_memory_equal(request->data, set.content[0] + request->offset, request->needed);
    run_close(&run);
}

static void a_command_that_fails_says_why(void **unused)
{
    struct run run;

    if (!open_commands(&run))
        skip();
    commands.is_refused = true; /* while the ring opens it, and once it is open */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_read(&run, run_request(&run, 0, 0, 0, PIECE)), -EOPNOTSUPP);
        assert_reason("offset 0: it is refused");
    }
    commands.is_refused = false;
    commands.status = -EIO;
    assert_int_equal(run_read(&run, run_request(&run, 0, 0, PIECE, PIECE)), -EIO);
    assert_reason("offset 4096: the disk says so");
    commands.status = 0;
    commands.ends = 3 * PIECE;
    assert_int_equal(run_read(&run, run_request(&run, 0, 0, 0, 5 * PIECE)), -ESTALE);
    assert_int_equal(run_read(&run, run_request(&run, 0, 0, 3 * PIECE, PIECE)), -ESTALE);
    assert_int_equal(run_read(&run, run_request(&run, 0, 0, 0, 3 * PIECE)), 3 * PIECE);
    run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_start_in_the_order_in_which_they_were_submitted),
        cmocka_unit_test(the_kernel_reads_ahead_of_what_is_read_in_order),
        cmocka_unit_test(read_ahead_is_that_of_the_device),
        cmocka_unit_test(a_file_begins_with_one_read),
        cmocka_unit_test(where_the_kernel_reads_ahead_few_reads_of_a_file_are_under_way),
        cmocka_unit_test(large_reads_are_given_to_the_kernel_before_the_reap),
        cmocka_unit_test(a_read_does_not_wait_for_a_late_one),
        cmocka_unit_test(an_error_is_an_error),
        cmocka_unit_test(short_reads_are_resumed_where_they_ended),
        cmocka_unit_test(an_error_after_a_short_read_is_an_error),
        cmocka_unit_test(a_read_takes_several_commands),
        cmocka_unit_test(a_command_that_fails_says_why),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
