/* SPDX-License-Identifier: Apache-2.0
 * What the io_uring of this machine offers: each thing is tried on a ring of its own. */
#include "readers/uring.h"

#include "base/file.h"
#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 256, BUFFER_BYTES = 64 * 1024 };
enum { REGISTER_IOWQ_MAX_WORKERS = 19 }; /* Linux 5.15; older headers lack it */

static int try_flags(unsigned flags)
{
    struct io_uring ring;
    struct io_uring_params params = {.flags = flags | IORING_SETUP_CLAMP};
    const int code = io_uring_queue_init_params(ENTRIES, &ring, &params);

    if (code == 0)
        io_uring_queue_exit(&ring);
    return code;
}

static int try_files(struct io_uring *ring)
{
    const int none = -1;

    return io_uring_register_files(ring, &none, 1);
}

static int try_buffers(struct io_uring *ring)
{
    struct iovec region = {.iov_base = malloc(BUFFER_BYTES), .iov_len = BUFFER_BYTES};
    const int code = region.iov_base ? io_uring_register_buffers(ring, &region, 1) : -ENOMEM;

    if (code == 0)
        io_uring_unregister_buffers(ring);
    free(region.iov_base);
    return code;
}

/* *workers: for files, on each NUMA node. */
static int try_workers(const struct io_uring *ring, uint32_t *workers)
{
    uint32_t most[2] = {0, 0}; /* bounded and unbounded; 0: only ask */

    if (syscall(__NR_io_uring_register, ring->ring_fd, REGISTER_IOWQ_MAX_WORKERS, most, 2) < 0)
        return -errno;
    *workers = most[0];
    return 0;
}

/* Is there a disk whose driver has queues without interrupts (queue/io_poll)? */
static int find_polled_disk(void)
{
    struct folder_names found;
    int code = -ENODEV;

    folder_names_matching(&found, "/sys/block/*/queue/io_poll");
    for (size_t i = 0; i < found.count && code; i++) {
        FILE *file = file_stream_kernel(found.list[i]);
        code = file && fgetc(file) == '1' ? 0 : -ENODEV;
        if (file)
            fclose(file);
    }
    folder_names_release(&found);
    return code;
}

void uring_offers(reader_tell tell, void *context)
{
    struct io_uring ring;
    uint32_t workers = 0;
    char threads[96];

    if (io_uring_queue_init(ENTRIES, &ring, 0))
        return; /* opening the reader says why */
    const int files = try_files(&ring), buffers = try_buffers(&ring);
    const int asked = try_workers(&ring, &workers);
    io_uring_queue_exit(&ring);
    snprintf(threads, sizeof threads,
             "at most %u kernel threads on each NUMA node for reads that cannot wait in the ring",
             workers);
    const struct reader_offer offers[] = {
        {"issuer", try_flags(SETUP_SINGLE_ISSUER),
         "the ring belongs to one thread, which deferred completions need", "Linux 6.0 and later"},
        {"deferred",
         uring_can_defer ? try_flags(SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN) : -ENOSYS,
         "completions wait for the reading thread, without interrupting it",
         "Linux 6.1 and later, built with liburing 2.3 or later"},
        {"files", files, "registered: a read takes no reference to its file",
         "allow io_uring_register in the container's seccomp profile"},
        {"buffers", buffers, "registered, with direct: no page is pinned for each read",
         buffers == -ENOMEM ? "raise 'ulimit -l'"
                            : "allow io_uring_register in the container's seccomp profile"},
        {"sqpoll", try_flags(IORING_SETUP_SQPOLL), "a kernel thread can submit (sqpoll)",
         "only needed for sqpoll: Linux 5.13 and later, or root"},
        {"polling", find_polled_disk(),
         "a disk has queues that are polled, without interrupts (iopoll)",
         "only needed for iopoll: an NVMe disk, and nvme.poll_queues=N on the kernel's command "
         "line"},
        {"passthrough", try_flags(SETUP_SQE128 | SETUP_CQE32),
         "entries large enough for the commands of --reader nvme", "Linux 5.19 and later"},
        {"workers", asked, threads, "the limit is unknown: Linux 5.15 and later say it"},
    };
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        tell(context, &offers[i]);
}
