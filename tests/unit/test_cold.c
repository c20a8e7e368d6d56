/* SPDX-License-Identifier: Apache-2.0
 * Real files on a real file system: cold files are called cold, others are caught. */
#include "tests/unit/folder.h"
#include "tests/unit/mounts.h"

#include "base/fail.h"
#include "cachectl/residency.h"
#include "cachectl/cold.h"
#include "cachectl/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { PAGE = 4096, FILE_PAGES = 512, NOBODY = 65534 };

static struct residency_probe *probe;

/* Reads left whose page another process drops before anybody looks. */
static unsigned drops;
static off_t unreadable_at; /* 0, or an offset that cannot be read */

ssize_t pread(int fd, void *bytes, size_t count, off_t at)
{
    if (unreadable_at && at == unreadable_at) {
        errno = EIO;
        return -1;
    }
    const ssize_t got = syscall(SYS_pread64, fd, bytes, count, at);

    if (drops) {
        drops--;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    return got;
}

static const char *make_file(const char *name, unsigned pages)
{
    static char block[PAGE];
    const char *path = folder_path(name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    memset(block, 'x', sizeof block);
    for (unsigned i = 0; i < pages; i++)
        assert_int_equal(write(fd, block, PAGE), PAGE);
    close(fd);
    return path;
}

static struct residency look(const char *path)
{
    struct residency residency;

    residency_file(probe, path, &residency);
    return residency;
}

static void evict(const char *path)
{
    struct evict_figures figures;

    assert_int_equal(cache_files(CACHE_EVICT, &path, 1, 0, NULL, &figures), 0);
    assert_int_equal(figures.failed_count, 0);
}

static void read_page(const char *path, unsigned page)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    assert_int_equal(pread(fd, &byte, 1, (off_t)page * PAGE), 1);
    close(fd);
}

/* How often the page cache was dropped, on request or under memory pressure. 0 without a
 * counter. */
static uint64_t cache_losses(void)
{
    static const char *const names[] = {"drop_pagecache ", "pgsteal_kswapd ", "pgsteal_direct "};
    char line[128];
    uint64_t losses = 0;
    FILE *file = fopen("/proc/vmstat", "re");

    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0)
                losses += strtoull(line + strlen(names[i]), NULL, 10);
    if (file)
        fclose(file);
    return losses;
}

/* Another process may drop the machine's page cache between warming a file and checking it. Then,
 * and only then, both are repeated: struct attempt attempt = attempt_first(); do warm, look; while
 * (attempt_again(&attempt, the result is not as expected)); */
struct attempt {
    unsigned count;
    uint64_t losses;
};

static struct attempt attempt_first(void)
{
    return (struct attempt){.losses = cache_losses()};
}

static bool attempt_again(struct attempt *attempt, bool wrong)
{
    const uint64_t losses = cache_losses();
    const bool lost = losses != attempt->losses;

    attempt->losses = losses;
    return wrong && lost && ++attempt->count < 100;
}

/* Run body in a child, optionally as nobody. Return whether it returned true. */
static bool in_child(bool unprivileged, bool (*body)(const char *path), const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (unprivileged && (setgid(NOBODY) || setuid(NOBODY)))
            _exit(3);
        _exit(body(path) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void warm_partly_warm_and_cold(void **unused)
{
    const char *path;
    struct evict_figures figures;
    struct residency written, one, warmed;
    struct attempt attempt = attempt_first();

    do
        written = look(path = make_file("steps", FILE_PAGES));
    while (attempt_again(&attempt, written.resident_bytes != FILE_PAGES * PAGE));
    assert_true(written.state == RESIDENCY_WARM);
    assert_int_equal(written.resident_bytes, FILE_PAGES * PAGE);
    evict(path);
    struct residency evicted = look(path);
    assert_true(evicted.state == RESIDENCY_COLD);
    assert_int_equal(evicted.resident_bytes, 0);
    assert_int_equal(evicted.total_bytes, FILE_PAGES * PAGE);
    attempt = attempt_first();
    do {
        read_page(path, 100);
        one = look(path);
    } while (attempt_again(&attempt, one.resident_bytes == 0));
    assert_true(one.resident_bytes > 0 && one.resident_bytes < FILE_PAGES * PAGE / 4);
    assert_true(one.state == RESIDENCY_WARM);
    assert_true(one.percent > 0.19 && one.percent < 25);
    attempt = attempt_first();
    do {
        assert_int_equal(cache_files(CACHE_WARM, &path, 1, 0, NULL, &figures), 0);
        warmed = look(path);
    } while (attempt_again(&attempt, warmed.resident_bytes != FILE_PAGES * PAGE));
    assert_int_equal(warmed.resident_bytes, FILE_PAGES * PAGE);
}

enum { CACHESTAT_CALL = 451 };

/* In a child: without cachestat(), if it can be refused here. */
static bool mincore_sees_the_same(const char *name)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CACHESTAT_CALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    struct attempt attempt = attempt_first();
    struct residency warm, cold;
    const char *path;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        return true;
    residency_probe_destroy(probe);
    probe = residency_probe_create();
    do
        warm = look(path = make_file(name, FILE_PAGES));
    while (attempt_again(&attempt, warm.resident_bytes != FILE_PAGES * PAGE));
    evict(path);
    cold = look(path);
    return warm.state == RESIDENCY_WARM && warm.method == RESIDENCY_MINCORE &&
           warm.percent == 100 && warm.resident_bytes == FILE_PAGES * PAGE &&
           cold.state == RESIDENCY_COLD && cold.method == RESIDENCY_MINCORE &&
           cold.resident_bytes == 0;
}

static void older_kernels_see_the_same(void **unused)
{
    assert_true(in_child(false, mincore_sees_the_same, "older"));
}

static void what_cannot_be_warmed_is_named(void **unused)
{
    const char *paths[] = {make_file("other", 1), make_file("damaged", FILE_PAGES),
                           folder_path("missing")};
    struct evict_figures figures;

    unreadable_at = 1 << 20;
    assert_int_equal(cache_files(CACHE_WARM, paths, 2, 0, NULL, &figures), 0);
    unreadable_at = 0;
    assert_int_equal(figures.file_count, 2);
    assert_int_equal(figures.failed_count, 1);
    assert_int_equal(figures.bytes, PAGE);
    assert_non_null(strstr(figures.reason, "/damaged: offset 1048576: cannot read: "));
    assert_int_equal(cache_files(CACHE_WARM, paths, 3, 0, NULL, &figures), 0);
    assert_int_equal(figures.failed_count, 1);
    assert_int_equal(figures.bytes, (FILE_PAGES + 1) * PAGE);
    assert_non_null(strstr(figures.reason, "/missing"));
}

/* The first check of a new probe reads a page to test itself; it must leave no trace. */
static void looking_leaves_no_trace(void **unused)
{
    /* Long before the file was written, so that an access would write it (relatime). */
    const struct timespec long_ago[] = {{.tv_sec = 1000000000}, {.tv_nsec = UTIME_OMIT}};
    const char *path = make_file("trace", FILE_PAGES);
    struct stat now;

    evict(path);
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    for (int i = 0; i < 3; i++) {
        struct residency_probe *fresh = residency_probe_create();
        struct residency residency;
        residency_file(fresh, path, &residency);
        assert_int_equal(residency.resident_bytes, 0);
        residency_probe_destroy(fresh);
    }
    assert_int_equal(look(path).resident_bytes, 0);
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(now.st_atim.tv_sec, long_ago[0].tv_sec);
}

/* The page that a new probe reads to test itself may be dropped by others at once. */
static void drops_by_others_do_not_blind(void **unused)
{
    const char *path = make_file("dropped", FILE_PAGES);
    struct residency_probe *own = residency_probe_create();
    struct residency residency;

    assert_non_null(own);
    evict(path);
    drops = 8;
    residency_file(own, path, &residency);
    assert_int_equal(drops, 0);
    assert_string_equal(residency.reason, "");
    assert_true(residency.state == RESIDENCY_COLD);
    residency_probe_destroy(own);
}

static void odd_files(void **unused)
{
    const char *empty = make_file("empty", 0), *sparse = folder_path("sparse"),
               *fifo = folder_path("fifo"), *short_one = folder_path("short");

    assert_true(look(empty).state == RESIDENCY_COLD);
    int fd = open(sparse, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, (off_t)3 << 30), 0);
    close(fd);
    struct residency hole = look(sparse);
    assert_true(hole.state == RESIDENCY_COLD && hole.total_bytes == UINT64_C(3) << 30);
    struct residency three;
    struct attempt attempt = attempt_first();
    do {
        folder_write("short", "abc", 3);
        three = look(short_one);
    } while (attempt_again(&attempt, three.resident_bytes != 3));
    assert_true(three.state == RESIDENCY_WARM && three.resident_bytes == 3);
    evict(short_one);
    assert_true(look(short_one).state == RESIDENCY_COLD);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    assert_true(look(fifo).state == RESIDENCY_UNVERIFIED); /* and it did not block */
    assert_true(look(folder_path("none")).state == RESIDENCY_UNVERIFIED);
    assert_non_null(strstr(look(folder_path("none")).reason, "No such file"));
    assert_true(look("/dev/zero").state == RESIDENCY_UNVERIFIED);
}

/* Parts of files: what is warm beside them does not count, and holes are none. */
static void parts_are_looked_at(void **unused)
{
    const char *paths[] = {make_file("parts", FILE_PAGES), make_file("other", FILE_PAGES)};
    struct range list[] = {{0, 8 * PAGE}, {256 * PAGE, 4 * PAGE}, {16 * PAGE, 4 * PAGE}};
    const struct ranges ranges = {
        .paths = paths, .count = 2, .first = (size_t[]){0, 2, 3}, .list = list};
    struct residency_total total;
    struct attempt attempt = attempt_first();

    do {
        evict(paths[0]);
        evict(paths[1]);
        read_page(paths[0], 100);
        read_page(paths[0], 258);
        read_page(paths[1], 99);
        assert_int_equal(residency_parts(probe, paths, 2, &ranges, 0, NULL, &total), 0);
    } while (attempt_again(&attempt, total.resident_bytes != PAGE));
    assert_int_equal(total.resident_bytes, PAGE);
    assert_int_equal(total.data_bytes, 16 * PAGE);
    assert_true(total.percent == 100.0 / 16 && total.state == RESIDENCY_WARM);
    list[1].bytes = 2 * PAGE;
    assert_int_equal(residency_parts(probe, paths, 2, &ranges, 0, NULL, &total), 0);
    assert_true(total.state == RESIDENCY_COLD && total.data_bytes == 14 * PAGE);
}

/* A large file with little in it is as warm as that. */
static void holes_are_not_cold_data(void **unused)
{
    const char *path;
    struct residency residency;
    struct attempt attempt = attempt_first();

    do {
        path = make_file("mostly holes", 8);
        assert_int_equal(truncate(path, (off_t)1 << 40), 0);
        residency = look(path);
    } while (attempt_again(&attempt, residency.resident_bytes != 8 * PAGE));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const off_t hole = lseek(fd, 0, SEEK_HOLE);
    close(fd);
    if (hole != 8 * PAGE)
        skip(); /* the file system says nothing of holes */
    assert_true(residency.state == RESIDENCY_WARM && residency.percent == 100);
    assert_int_equal(residency.data_bytes, 8 * PAGE);
    assert_int_equal(residency.total_bytes, UINT64_C(1) << 40);
    evict(path);
    assert_true(look(path).state == RESIDENCY_COLD);
}

/* The control reads a page of the data, where the first file begins with a hole, too. */
static void a_hole_at_the_start_blinds_no_probe(void **unused)
{
    const char *path = folder_path("hole first");
    struct residency_probe *fresh = residency_probe_create();
    struct residency residency;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_int_equal(pwrite(fd, path, 8, 64 * PAGE), 8);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    evict(path);
    residency_file(fresh, path, &residency);
    residency_probe_destroy(fresh);
    assert_string_equal(residency.reason, "");
    assert_int_equal(residency.state, RESIDENCY_COLD);
}

/* ---- where cachestat is blind ---- */

/* A warm file must be reported as warm, even by the first check on its mount, and must not be
 * evicted by that check. */
static bool overlay_shows(const char *folder)
{
    char options[1024], path[512], lower[512];
    struct residency residency, first;
    struct evict_figures figures;
    const char *file = path, *below = lower;
    struct attempt attempt = attempt_first();

    snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", folder,
             folder, folder);
    snprintf(path, sizeof path, "%s/merged", folder);
    if (!own_mounts() || mount("overlay", path, "overlay", 0, options))
        _exit(77);
    snprintf(path, sizeof path, "%s/merged/file", folder);
    snprintf(lower, sizeof lower, "%s/lower/file", folder);
    do {
        residency_probe_destroy(probe);
        probe = residency_probe_create();
        if (!probe || cache_files(CACHE_WARM, &below, 1, 0, NULL, &figures))
            return false;
        residency_file(probe, path, &first);
        residency_file(probe, path, &residency);
    } while (attempt_again(&attempt, first.percent != 100 || residency.percent != 100));
    if (first.state != RESIDENCY_WARM || first.percent != 100 ||
        residency.state != RESIDENCY_WARM || residency.percent != 100)
        return false;
    if (cache_files(CACHE_EVICT_MOUNT, &file, 1, 0, NULL, &figures))
        return false;
    residency_file(probe, path, &residency);
    return residency.state == RESIDENCY_COLD && residency.resident_bytes == 0;
}

static void overlay_is_looked_through(void **unused)
{
    static const char *const folders[] = {"lower", "upper", "work", "merged"};
    int status = 0;

    if (geteuid() != 0)
        skip();
    for (int i = 0; i < 4; i++)
        assert_int_equal(mkdir(folder_path(folders[i]), 0755), 0);
    make_file("lower/file", FILE_PAGES);
    pid_t pid = fork();
    if (pid == 0)
        _exit(overlay_shows(test_folder) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* overlays cannot be mounted here */
    assert_int_equal(status, 0);
}

static void many_files_are_added_up(void **unused)
{
    enum { COUNT = 300 };
    static char names[COUNT][32];
    static const char *paths[COUNT];
    struct residency_total total;
    struct evict_figures figures;

    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "many.%d", i);
        paths[i] = strdup(folder_path(names[i]));
    }
    struct attempt attempt = attempt_first();
    do {
        for (int i = 0; i < COUNT; i++)
            make_file(names[i], 4);
        assert_int_equal(residency_parts(probe, paths, COUNT, NULL, 0, NULL, &total), 0);
    } while (attempt_again(&attempt, total.resident_bytes != COUNT * 4 * PAGE));
    assert_true(total.state == RESIDENCY_WARM && total.file_count == COUNT);
    assert_int_equal(total.resident_bytes, COUNT * 4 * PAGE);
    assert_int_equal(total.total_bytes, COUNT * 4 * PAGE); /* dirty or not */
    assert_int_equal(total.data_bytes, COUNT * 4 * PAGE);
    assert_int_equal(total.methods, look(paths[0]).method);
    assert_int_equal(total.warm_count, COUNT);
    assert_int_equal(cache_files(CACHE_EVICT_MOUNT, paths, COUNT, 0, NULL, &figures), 0);
    assert_int_equal(figures.file_count, COUNT);
    assert_int_equal(unlink(paths[9]), 0);
    attempt = attempt_first();
    do {
        for (unsigned page = 0; page < 4; page++)
            read_page(paths[7], page);
        assert_int_equal(residency_parts(probe, paths, COUNT, NULL, 0, NULL, &total), 0);
    } while (attempt_again(&attempt, total.resident_bytes != 4 * PAGE));
    assert_true(total.resident_bytes == 4 * PAGE);
    assert_true(total.worst[0].resident_bytes == total.resident_bytes);
    assert_string_equal(total.worst[0].path, paths[7]);
    assert_int_equal(total.worst[1].resident_bytes, 0);
    assert_int_equal(total.unverified_count, 1);
    const char *named = strstr(total.reason, "many.9");
    assert_non_null(named);
    assert_null(strstr(named + 1, "many.9"));   /* once */
    assert_true(total.state == RESIDENCY_WARM); /* verified, regardless of the missing one */
    evict(paths[7]);
    assert_int_equal(residency_parts(probe, paths, COUNT, NULL, 0, NULL, &total), 0);
    assert_true(total.state == RESIDENCY_UNVERIFIED); /* one of them could not be checked */
    for (int i = 0; i < COUNT; i++)
        free((void *)(uintptr_t)paths[i]);
}

/* ---- without privilege ---- */

static bool stranger_is_not_told(const char *path)
{
    struct residency residency = look(path);

    /* Older kernels let every process use cachestat, and its result is then correct. */
    return residency.state == RESIDENCY_UNVERIFIED
               ? strstr(residency.reason, "owner") != NULL
               : residency.method == RESIDENCY_CACHESTAT && residency.resident_bytes == 0;
}

static bool owner_is_told(const char *path)
{
    struct residency residency = look(path);

    return residency.state == RESIDENCY_COLD && residency.resident_bytes == 0;
}

static bool evicts_and_proves(const char *path)
{
    const struct cold_request request = {
        .paths = &path,
        .count = 1,
        .drop = true,
        .helpers = &(struct drop_helpers){.sudo = "/bin/false", .cachectl = "/bin/false"}};
    struct cold_result result;
    int code = cold_make(&request, &result);

    return code == 0 && result.label == RESIDENCY_COLD && result.dropped && !result.system_wide &&
           strstr(result.method, "eviction file by file, dentries and inodes stay") &&
           result.residue_percent == 0;
}

static void without_privilege(void **unused)
{
    const char *path;

    if (geteuid() != 0)
        skip();
    path = make_file("foreign", FILE_PAGES);
    assert_int_equal(chmod(test_folder, 0755), 0);
    evict(path);
    assert_true(in_child(true, stranger_is_not_told, path));
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_true(in_child(true, owner_is_told, path));
    read_page(path, 3);
    assert_true(in_child(true, evicts_and_proves, path));
    assert_true(look(path).state == RESIDENCY_COLD);
}

/* sudo is called as `sudo -n CACHECTL drop`, and trusted only after checking. */
static bool by_sudo(const char *path)
{
    const struct cold_request request = {
        .paths = &path,
        .count = 1,
        .drop = true,
        .helpers = &(struct drop_helpers){.sudo = folder_path("sudo"), .cachectl = "/x/cachectl"}};
    struct cold_result result;

    return cold_make(&request, &result) == 0 && result.system_wide &&
           strstr(result.method, "sudo") && result.label == RESIDENCY_COLD;
}

static void sudo_never_asks(void **unused)
{
    static const char script[] = "#!/bin/sh\n"
                                 "[ \"$*\" = '-n /x/cachectl drop' ] || exit 1\n"
                                 "read line && exit 2\n"
                                 "exit 0\n";
    const char *path = make_file("sudoed", 8);

    if (geteuid() != 0)
        skip();
    folder_write("sudo", script, sizeof script - 1);
    assert_int_equal(chmod(folder_path("sudo"), 0755), 0);
    assert_int_equal(chmod(test_folder, 0755), 0);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    evict(path);
    assert_true(in_child(true, by_sudo, path));
}

/* What is mounted over the kernel's file takes the word and drops nothing: a file of a disk, or one
 * of /proc, which the kernel's count shows. */
static bool false_files_drop_nothing(const char *path)
{
    struct attempt attempt = attempt_first();
    int code;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount(path, "/proc/sys/vm/drop_caches", NULL, MS_BIND, NULL))
        _exit(77);
    if (drop_caches(0, NULL) != -EPERM || !strstr(fail_reason(), "not the kernel's file"))
        return false;
    if (mount("/proc/self/oom_score_adj", "/proc/sys/vm/drop_caches", NULL, MS_BIND, NULL))
        _exit(77);
    do
        code = drop_caches(0, NULL);
    while (attempt_again(&attempt, code == 0));
    return code == -EPERM;
}

static void a_false_drop_is_none(void **unused)
{
    const char *path = make_file("control", 0);
    int status = 0;

    if (geteuid() != 0 || cache_losses() == 0)
        skip();
    pid_t pid = fork();
    if (pid == 0)
        _exit(false_files_drop_nothing(path) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* nothing can be mounted there */
    assert_int_equal(status, 0);
}

/* ---- what stays resident ---- */

static void mapped_by_another_is_caught(void **unused)
{
    const char *path = make_file("mapped", FILE_PAGES);
    int ready[2];
    struct cold_result result;
    const struct cold_request request = {.paths = &path, .count = 1, .drop = true};
    char byte, holder[64];

    evict(path);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves no process running */
        int fd = open(path, O_RDONLY);
        const volatile char *map = mmap(NULL, FILE_PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
        for (int i = 0; i < FILE_PAGES / 2; i++)
            (void)map[i * PAGE];
        close(fd);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(cold_make(&request, &result), 0);
    assert_true(result.label == RESIDENCY_WARM);
    assert_true(result.resident_bytes >= FILE_PAGES / 2 * PAGE);
    assert_true(result.residue_percent >= 50);
    snprintf(holder, sizeof holder, "mapped by process %d (", pid);
    assert_non_null(strstr(result.reason, holder));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(cold_make(&request, &result), 0);
    assert_true(result.label == RESIDENCY_COLD && result.resident_bytes == 0);
    assert_true(result.total_ns >= result.drop_ns);
    close(ready[0]);
    close(ready[1]);
}

static void memory_is_never_cold(void **unused)
{
    char path[] = "/dev/shm/iobench-test-XXXXXX";
    const char *paths[] = {path};
    int fd = mkstemp(path);
    struct statfs place;
    struct cold_result result;
    const struct cold_request request = {.paths = paths, .count = 1};

    if (fd < 0 || fstatfs(fd, &place) || place.f_type != TMPFS_MAGIC)
        skip();
    assert_int_equal(write(fd, path, sizeof path), sizeof path);
    assert_true(look(path).state == RESIDENCY_WARM);
    assert_int_equal(cold_make(&request, &result), 0);
    assert_true(result.label == RESIDENCY_WARM);
    assert_non_null(strstr(result.reason, "tmpfs"));
    close(fd);
    unlink(path);
}

static void vanished_is_not_cold(void **unused)
{
    const char *paths[] = {make_file("stays", 8), folder_path("went")};
    struct cold_result result;
    const struct cold_request request = {.paths = paths, .count = 2};

    evict(paths[0]);
    assert_int_equal(cold_make(&request, &result), 0);
    assert_true(result.label == RESIDENCY_UNVERIFIED && result.unverified_count == 1);
    assert_non_null(strstr(result.reason, "went"));
}

static void maps_lines(void **unused)
{
    const struct holder holder = {.inode = 1234, .device = makedev(8, 0x12), .path = "/set/a.rec"};

    assert_true(holder_line_matches(
        "7f0000000000-7f0000001000 r--s 00000000 08:12 1234       /elsewhere/b.rec\n", &holder));
    assert_true(holder_line_matches(
        "7f0000000000-7f0000001000 r--s 00000000 00:2a 1234       /mnt/a.rec\n", &holder));
    assert_true(holder_line_matches(
        "7f0000000000-7f0000001000 r--s 00000000 00:2a 1234   /mnt/a.rec (deleted)\n", &holder));
    assert_false(holder_line_matches(
        "7f0000000000-7f0000001000 r--s 00000000 00:2a 1234   /mnt/a.rec2\n", &holder));
    assert_false(holder_line_matches(
        "7f0000000000-7f0000001000 r--s 00000000 08:12 1235   /set/a.rec\n", &holder));
    assert_false(holder_line_matches("7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n", &holder));
    assert_false(holder_line_matches("", &holder));
}

/* These tests must not run on a tmpfs, and /tmp may be one. */
static int setup(void **state)
{
    struct statfs place;

    setenv("TMPDIR", "/var/tmp", 0);
    if (folder_setup(state) || statfs(test_folder, &place))
        return -1;
    probe = residency_probe_create();
    return probe ? 0 : -1;
}

static int teardown(void **state)
{
    residency_probe_destroy(probe);
    return folder_teardown(state);
}

/* gVisor and some network file systems hide residency: nothing can be tested there. Asks the kernel
 * itself, as a defect of what is tested would else skip its tests. */
static bool page_cache_shows(void)
{
    struct statfs place;
    unsigned char seen = 0;
    bool shows = false;

    if (setup(NULL) == 0) {
        struct attempt attempt = attempt_first();
        do {
            const int fd = open(make_file("x", 1), O_RDWR | O_CLOEXEC);
            void *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
            shows = mincore(map, PAGE, &seen) == 0 && seen & 1 && fstatfs(fd, &place) == 0 &&
                    place.f_type != TMPFS_MAGIC;
            munmap(map, PAGE);
            close(fd);
        } while (attempt_again(&attempt, !shows));
        teardown(NULL);
    }
    return shows;
}

/* What is cold in the page cache is not cold if its disk is memory. */
static void a_disk_in_memory_is_never_cold(void **unused)
{
    struct device_list devices = {.memory = "zram0, a disk in memory"}, disk = {.count = 1};
    struct beneath found;

    beneath_look(&devices, 4096, &found);
    assert_int_equal(found.state, RESIDENCY_WARM);
    assert_int_equal(found.resident_bytes, 4096);
    assert_string_equal(found.reason, "on zram0, a disk in memory, which can never be cold");
    beneath_look(&disk, 4096, &found);
    assert_int_equal(found.state, RESIDENCY_COLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_in_memory_is_never_cold),
        cmocka_unit_test(warm_partly_warm_and_cold),
        cmocka_unit_test(older_kernels_see_the_same),
        cmocka_unit_test(what_cannot_be_warmed_is_named),
        cmocka_unit_test(looking_leaves_no_trace),
        cmocka_unit_test(drops_by_others_do_not_blind),
        cmocka_unit_test(odd_files),
        cmocka_unit_test(parts_are_looked_at),
        cmocka_unit_test(holes_are_not_cold_data),
        cmocka_unit_test(a_hole_at_the_start_blinds_no_probe),
        cmocka_unit_test(overlay_is_looked_through),
        cmocka_unit_test(many_files_are_added_up),
        cmocka_unit_test(without_privilege),
        cmocka_unit_test(sudo_never_asks),
        cmocka_unit_test(a_false_drop_is_none),
        cmocka_unit_test(mapped_by_another_is_caught),
        cmocka_unit_test(memory_is_never_cold),
        cmocka_unit_test(vanished_is_not_cold),
        cmocka_unit_test(maps_lines),
    };

    if (!page_cache_shows()) {
        print_message("skipped: the page cache does not show in TMPDIR or /var/tmp\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
