/* SPDX-License-Identifier: Apache-2.0
 *
 * memory: allocation off the clock, with a reason when it fails; what this process may still use;
 * maps of files that others cut.
 */
#ifndef IOBENCH_BASE_MEMORY_H
#define IOBENCH_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return zeroed memory, or NULL with a reason. memory_array() checks count * size for overflow. */
void *memory_zeroed(size_t bytes);
void *memory_array(size_t count, size_t size);
/* Return page-aligned memory that is not zeroed, or NULL with a reason. Free with free(). */
void *memory_pages(size_t bytes);

/* Reserve space for one more element of `size` bytes after the first `count`. rows: the address of
 * the pointer to the array (NULL before the first call), which may move. The capacity is the next
 * power of two and only this function grows the array, so callers need not keep it.
 * Returns 0, or -ENOMEM with a reason that names `what` (a plural) and the array unchanged. */
int memory_room(void *rows, uint64_t count, size_t size, const char *what);

/* Never free this memory, which a stuck thread or the kernel may still use: keep it reachable, so
 * that a leak checker does not report it. Any thread. */
void memory_keep(void *memory);

/* Return the resident memory of this process, or 0 if unknown. */
uint64_t memory_resident_bytes(void);

/* Memory that this process may still use: the minimum of what the machine has, what its control
 * group and each ancestor allow, and what is left of ulimit -v and -d. The roots are arguments
 * ("/proc", "/sys"). Any thread. */
struct headroom {
    uint64_t available_bytes; /* a group's page cache counts as available: it is reclaimable */
    const char *cause;    /* what bounds available_bytes: "the machine", "the control group", ... */
    uint64_t limit_bytes; /* smallest limit of the groups; 0: none below the machine's memory */
};

void headroom_find(struct headroom *headroom, const char *proc, const char *sys);
uint64_t memory_available_bytes(void); /* of this machine's /proc and /sys */

/* ---- fault_guard ----
 *
 * Reads mapped files that others may truncate. Touching a page past the new end, or one that
 * storage cannot read, raises SIGBUS, which would end the program. Between begin and end such a
 * page becomes zeros instead, and end reports the bytes as lost. Faults elsewhere go to the
 * previous handler. */

extern const char fault_guard_reason[];

/* Install before maps are used, and again if another handler may have replaced it. Any thread,
 * while no other uses a map. */
void fault_guard_install(void);

/* One guarded use at a time per thread. */
void fault_guard_begin(void);
/* Return false if a page of [bytes, bytes + length) is lost, to any thread, or if this thread lost
 * any page since begin. */
bool fault_guard_end(const void *bytes, size_t length);

/* Forget lost pages of a range before it is unmapped. */
void fault_guard_forget(const void *bytes, size_t length);

#endif
