/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES_MOST = 4096 }; /* remembered; beyond that every guarded range counts as lost */

const char fault_guard_reason[] =
    "the file was cut while it was mapped, or a page of it cannot be read any longer";

static struct sigaction former;
static uintptr_t page_bytes;
static _Atomic uintptr_t lost_pages[PAGES_MOST];
static _Atomic uint64_t lost_count;
static _Thread_local volatile sig_atomic_t guarded, lost;

/* Async-signal-safe calls only; mmap() is a bare system call. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const int before = errno;

    if (guarded && info->si_code == BUS_ADRERR) {
        /* Record the page before it becomes zeros, so that a reader of the zeros finds the record.
         */
        const uintptr_t page = (uintptr_t)info->si_addr & ~(page_bytes - 1);
        const uint64_t index = atomic_fetch_add(&lost_count, 1);
        if (index < PAGES_MOST)
            atomic_store(&lost_pages[index], page);
        if (mmap((void *)page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) == (void *)page) {
            lost = 1;
            errno = before;
            return;
        }
    }
    if (former.sa_flags & SA_SIGINFO)
        former.sa_sigaction(number, info, context);
    else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN)
        former.sa_handler(number);
    else
        signal(SIGBUS, SIG_DFL); /* the fault recurs */
    errno = before;
}

void fault_guard_install(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sigaction now;

    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&lock);
    if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != on_bus_error) {
        page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
        former = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void fault_guard_begin(void)
{
    lost = 0;
    guarded = 1;
}

/* Number of recorded pages to check. */
static uint64_t note_count(void)
{
    const uint64_t count = atomic_load(&lost_count);

    return count < PAGES_MOST ? count : PAGES_MOST;
}

bool fault_guard_end(const void *bytes, size_t length)
{
    const uintptr_t first = (uintptr_t)bytes & ~(page_bytes - 1), end = (uintptr_t)bytes + length;

    guarded = 0;
    if (lost)
        return false;
    for (uint64_t i = 0, count = note_count(); i < count; i++) {
        const uintptr_t page = atomic_load(&lost_pages[i]);
        if (page >= first && page < end)
            return false;
    }
    return atomic_load(&lost_count) <= PAGES_MOST;
}

void fault_guard_forget(const void *bytes, size_t length)
{
    const uintptr_t first = (uintptr_t)bytes, end = first + length;

    for (uint64_t i = 0, count = note_count(); i < count; i++) {
        const uintptr_t page = atomic_load(&lost_pages[i]);
        if (page >= first && page < end)
            atomic_store(&lost_pages[i], 0);
    }
}
