/* SPDX-License-Identifier: Apache-2.0
 *
 * liar.so: lets the machine lie to a program. For LD_PRELOAD, with glibc. $LIAR has one word or
 * several with commas; lies that start midway in an epoch start after 20 reads of data.
 *
 *   clock-ahead   CLOCK_MONOTONIC goes 3 s forward      clock-back   3 s back
 *   clock-slow    ... passes at half its speed
 *   clock-half    ... from the start, with all that waits by it
 *   clock-double  ... at twice its speed
 *   day-ahead     CLOCK_REALTIME goes 1 h forward    day-jumps    ... at its 30th reading
 *   sleep-late    each sleep takes three times as long
 *   io-stuck      read_bytes of /proc/self/io stays     io-double    ... grows by twice as much
 *   io-back       ... restarts at 0                     io-none      ... is not there
 *   disk-stuck    sectors read of a block device stay   disk-double  ... grow by twice as much
 *   drop-nothing  dropping caches does nothing          cache-blind  nothing is ever in memory
 *   sync-nothing  fsync and fdatasync do nothing         statfs-disk  every file system is ext4
 *   read-zeros    one read returns zeros                 read-flip    one bit of one read is wrong
 *   read-again    one read brings what the one before brought, where both are as long
 *   read-long     one read says that it brought all and brought half
 *   read-slow     each read of data takes 20 ms longer
 *   read-burst    a throttle of 6 MB/s with a credit of 1.5 MB
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "tests/cli/fortified.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

enum { MIDDLE = 20, MANY_DAYS = 30, SECOND_NS = 1000000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned data_reads;
static long long middle_ns; /* when it happened; 0: not yet */

static bool tells(const char *lie)
{
    const char *lies = getenv("LIAR"), *at = lies ? strstr(lies, lie) : NULL;
    const size_t length = strlen(lie);

    return at && (at == lies || at[-1] == ',') && (at[length] == ',' || at[length] == '\0');
}

static long long middle(void)
{
    pthread_mutex_lock(&lock);
    const long long ns = middle_ns;
    pthread_mutex_unlock(&lock);
    return ns;
}

/* The counter's first value. */
static unsigned long long first_of(unsigned long long *first, unsigned long long value)
{
    pthread_mutex_lock(&lock);
    if (*first == 0)
        *first = value;
    value = *first;
    pthread_mutex_unlock(&lock);
    return value;
}

/* ---- writes ---- */

int fsync(int fd)
{
    return tells("sync-nothing") ? 0 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return tells("sync-nothing") ? 0 : (int)syscall(SYS_fdatasync, fd);
}

/* ---- clocks ---- */

static long long now_ns(clockid_t id)
{
    struct timespec now;

    syscall(SYS_clock_gettime, id, &now);
    return (long long)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static struct timespec time_of(long long ns)
{
    return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

static unsigned reads_of_day(void)
{
    static unsigned reads;

    pthread_mutex_lock(&lock);
    const unsigned count = ++reads;
    pthread_mutex_unlock(&lock);
    return count;
}

/* The whole program lives by a clock of another speed: what it waits for is told in true time. */
static long long start_ns;

__attribute__((constructor)) static void start(void)
{
    start_ns = now_ns(CLOCK_MONOTONIC);
}

static long long told_ns(long long ns)
{
    const long long since = ns - start_ns;

    return start_ns + (tells("clock-half") ? since / 2 : tells("clock-double") ? since * 2 : since);
}

static long long true_ns(long long ns)
{
    const long long since = ns - start_ns;

    return start_ns + (tells("clock-half") ? since * 2 : tells("clock-double") ? since / 2 : since);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    const long long since = middle();
    long long ns = now_ns(id);

    if (id == CLOCK_REALTIME &&
        ((tells("day-ahead") && since) || (tells("day-jumps") && reads_of_day() > MANY_DAYS)))
        ns += 3600LL * SECOND_NS;
    if (id == CLOCK_MONOTONIC)
        ns = told_ns(ns);
    if (id == CLOCK_MONOTONIC && since) {
        if (tells("clock-ahead"))
            ns += 3LL * SECOND_NS;
        if (tells("clock-back"))
            ns -= 3LL * SECOND_NS;
        if (tells("clock-slow"))
            ns = since + (ns - since) / 2;
    }
    *time = time_of(ns);
    return 0;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *until, struct timespec *left)
{
    long long ns = (long long)until->tv_sec * SECOND_NS + until->tv_nsec;

    if (id == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME))
        ns = true_ns(ns);
    if (tells("sleep-late") && (flags & TIMER_ABSTIME) && ns > now_ns(id))
        ns += 2 * (ns - now_ns(id));
    const struct timespec late = time_of(ns);
    return syscall(SYS_clock_nanosleep, id, flags, &late, left) ? -1 : 0;
}

/* Conditions of this program are of CLOCK_MONOTONIC. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    const struct timespec then =
        until->tv_sec > INT32_MAX
            ? *until
            : time_of(true_ns((long long)until->tv_sec * SECOND_NS + until->tv_nsec));

    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &then);
}

/* ---- counters of the kernel ---- */

static bool is_path_of(int fd, const char *end)
{
    char link[64], path[512];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < (ssize_t)strlen(end))
        return false;
    path[length] = '\0';
    return strcmp(path + length - strlen(end), end) == 0;
}

/* Replace the number at the start of text; the rest stays. */
static ssize_t replace(char *text, ssize_t bytes, char *at, unsigned long long value, size_t room)
{
    char rest[4096], digits[32];
    const size_t old = strspn(at, "0123456789");
    const size_t rest_bytes = (size_t)(text + bytes - at) - old;
    const size_t fresh = (size_t)snprintf(digits, sizeof digits, "%llu", value);

    if (rest_bytes > sizeof rest || (size_t)(at - text) + fresh + rest_bytes > room)
        return bytes;
    memcpy(rest, at + old, rest_bytes);
    memcpy(at, digits, fresh);
    memcpy(at + fresh, rest, rest_bytes);
    return at - text + (ssize_t)(fresh + rest_bytes);
}

static unsigned long long told(const char *what, unsigned long long value, unsigned long long first)
{
    char stuck[32], twice[32], back[32];

    snprintf(stuck, sizeof stuck, "%s-stuck", what);
    snprintf(twice, sizeof twice, "%s-double", what);
    snprintf(back, sizeof back, "%s-back", what);
    if (tells(stuck))
        return first;
    if (tells(twice))
        return first + 2 * (value - first);
    return tells(back) && middle() ? (value - first) / 1000 : value;
}

static ssize_t lie_about_io(char *text, ssize_t bytes, size_t room)
{
    static unsigned long long first;
    text[bytes < (ssize_t)room ? bytes : bytes - 1] = '\0';
    char *at = strstr(text, "\nread_bytes: ");

    if (!at)
        return bytes;
    if (tells("io-none"))
        return at - text + 1;
    at += strlen("\nread_bytes: ");
    const unsigned long long value = strtoull(at, NULL, 10);
    return replace(text, bytes, at, told("io", value, first_of(&first, value)), room);
}

static ssize_t lie_about_disk(char *text, ssize_t bytes, size_t room)
{
    static unsigned long long first;
    char *at = text + strspn(text, " ");

    for (int i = 0; i < 2; i++) { /* reads, merged */
        at += strspn(at, "0123456789");
        at += strspn(at, " ");
    }
    const unsigned long long value = strtoull(at, NULL, 10);
    return replace(text, bytes, at, told("disk", value, first_of(&first, value)), room);
}

ssize_t pread(int fd, void *to, size_t count, off_t offset)
{
    char *text = to;
    ssize_t bytes = syscall(SYS_pread64, fd, to, count, offset);

    if (is_path_of(fd, "/io") && getenv("LIAR"))
        return offset || bytes <= 0 ? 0 : lie_about_io(text, bytes, count);
    if (is_path_of(fd, "/stat") && (tells("disk-stuck") || tells("disk-double")))
        return offset || bytes <= 0 ? 0 : lie_about_disk(text, bytes, count);
    return bytes;
}

FORTIFIED(__pread_chk, pread);
FORTIFIED(__pread64_chk, pread);

/* ---- caches ---- */

ssize_t write(int fd, const void *from, size_t count)
{
    if (tells("drop-nothing") && is_path_of(fd, "/drop_caches"))
        return (ssize_t)count;
    return syscall(SYS_write, fd, from, count);
}

int posix_fadvise(int fd, off_t offset, off_t length, int advice)
{
    return tells("drop-nothing") ? 0 : (int)-syscall(SYS_fadvise64, fd, offset, length, advice);
}

int fstatfs(int fd, struct statfs *place)
{
    const int code = (int)syscall(SYS_fstatfs, fd, place);

    if (code == 0 && tells("statfs-disk"))
        place->f_type = 0xef53;
    return code;
}

int mincore(void *at, size_t bytes, unsigned char *pages)
{
    const long code = syscall(SYS_mincore, at, bytes, pages);

    if (code == 0 && tells("cache-blind"))
        memset(pages, 0, (bytes + 4095) / 4096);
    return (int)code;
}

long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long words[6];
    va_list list;

    if (!next)
        *(void **)(&next) = dlsym(RTLD_NEXT, "syscall");
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    const long code = next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    if (number == SYS_cachestat && code == 0 && tells("cache-blind"))
        memset((void *)(uintptr_t)words[2], 0, sizeof(uint64_t[5]));
    return code;
}

/* ---- data ---- */

/* Remembers only complete, sequential reads (threads=1). */
static void lie_about_data(uint8_t *data, size_t bytes)
{
    static uint8_t former[1 << 20];
    static size_t former_bytes;
    static bool done;

    pthread_mutex_lock(&lock);
    const bool now = ++data_reads >= MIDDLE && !done;
    if (now && middle_ns == 0)
        middle_ns = now_ns(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&lock);
    if (tells("read-again")) {
        if (now && former_bytes == bytes) {
            memcpy(data, former, bytes);
            done = true;
        } else if (bytes <= sizeof former) {
            memcpy(former, data, bytes);
            former_bytes = bytes;
        }
        return;
    }
    if (!now)
        return;
    done = true;
    if (tells("read-zeros"))
        memset(data, 0, bytes);
    if (tells("read-flip"))
        data[bytes / 2] ^= 4;
    if (tells("read-long"))
        memset(data + bytes / 2, 0xa5, bytes - bytes / 2);
}

/* A token bucket of bytes with a rate and a depth. */
static void throttle(size_t bytes)
{
    const double depth = 1.5e6, rate = 6e6;
    static double credit = 1.5e6;
    static long long then_ns;

    pthread_mutex_lock(&lock);
    const long long ns = now_ns(CLOCK_MONOTONIC);
    credit += then_ns ? (double)(ns - then_ns) * 1e-9 * rate : 0;
    credit = credit > depth ? depth : credit;
    credit -= (double)bytes;
    then_ns = ns;
    const double debt = credit < 0 ? -credit : 0;
    pthread_mutex_unlock(&lock);
    usleep((useconds_t)(debt / rate * 1e6));
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    const long low = (long)offset, high = 0;
    const ssize_t bytes = syscall(SYS_preadv2, fd, parts, count, low, high, flags);

    if (tells("read-slow"))
        usleep(20000);
    if (bytes > 0 && tells("read-burst"))
        throttle((size_t)bytes);
    if (bytes > 0)
        lie_about_data(parts[0].iov_base, (size_t)bytes);
    return bytes;
}
