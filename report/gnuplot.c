/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gnuplot.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const uint64_t time_limit_ns = UINT64_C(120000000000), nap_ns = 2000000;

void gnuplot_begin(FILE *script, unsigned width, unsigned height)
{
    fprintf(script,
            "set terminal svg size %u,%u noenhanced font 'sans-serif,12' background '#ffffff'\n"
            "set encoding utf8\n",
            width, height);
}

/* Between single quotes only the quote itself is special. */
void gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

/* The three files of a gnuplot: its program, its picture, its complaints. They have no names, so
 * nothing is left behind. */
enum { IN, OUT, COMPLAINTS, FILES };

static int open_files(int files[FILES])
{
    for (int i = 0; i < FILES; i++)
        files[i] = -1;
    for (int i = 0; i < FILES; i++)
        if ((files[i] = memfd_create("gnuplot", MFD_CLOEXEC)) < 0)
            return fail(errno, "cannot make a file in memory: %s", fail_errno_text(errno));
    return 0;
}

static int start(const int files[FILES], pid_t *pid)
{
    static const char *const argv[] = {"gnuplot", "-", NULL};
    posix_spawn_file_actions_t actions;

    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < FILES; i++)
        posix_spawn_file_actions_adddup2(&actions, files[i], i);
    int code = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code == ENOENT)
        return fail(ENOENT, "gnuplot draws the pictures and is not installed: apt-get install "
                            "gnuplot-nox, or the like");
    return code ? fail(code, "gnuplot: cannot run it: %s", fail_errno_text(code)) : 0;
}

static int wait_for(pid_t pid, int *status)
{
    const uint64_t start_ns = clock_now_ns();
    pid_t ended;

    while ((ended = waitpid(pid, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (clock_now_ns() - start_ns > time_limit_ns) {
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return fail(ETIMEDOUT, "gnuplot: not done after %.0f s", (double)time_limit_ns / 1e9);
        }
        clock_sleep_ns(nap_ns);
    }
    return ended < 0 ? fail(errno, "gnuplot: lost sight of it: %s", fail_errno_text(errno)) : 0;
}

/* A file of ours as text, to be freed. */
static char *take(int file, size_t *bytes)
{
    struct stat status;
    char *text = fstat(file, &status) == 0 ? calloc((size_t)status.st_size + 1, 1) : NULL;

    *bytes = 0;
    if (!text) {
        fail(ENOMEM, "out of memory");
        return NULL;
    }
    *bytes = (size_t)status.st_size;
    if (file_read_at(file, text, *bytes, 0, "gnuplot") < 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int write_picture(const char *svg, size_t bytes, const char *path)
{
    if (strcmp(path, "-") != 0)
        return report_write_file(path, svg, bytes);
    return report_write_file("/dev/stdout", svg, bytes);
}

/* What it wrote is a picture only when it says nothing else. */
static int collect(const int files[FILES], int status, const char *path)
{
    size_t svg_bytes, complaint_bytes;
    char *svg = take(files[OUT], &svg_bytes);
    char *complaint = svg ? take(files[COMPLAINTS], &complaint_bytes) : NULL;
    int code = complaint ? 0 : -ENOMEM;

    if (code == 0 && (status != 0 || !strstr(svg, "</svg>"))) {
        complaint[strcspn(complaint, "\n") ? strcspn(complaint, "\n") : complaint_bytes] = '\0';
        code = fail(EIO, "gnuplot drew nothing: %.400s", complaint);
    }
    if (code == 0)
        code = write_picture(svg, svg_bytes, path);
    free(complaint);
    free(svg);
    return code;
}

int gnuplot_draw(const char *script, size_t bytes, const char *path)
{
    int files[FILES], status = 0;
    pid_t pid = 0;
    int code = open_files(files);

    if (code == 0)
        code = file_write_at(files[IN], script, bytes, 0, "gnuplot");
    if (code == 0)
        code = start(files, &pid);
    if (code == 0)
        code = wait_for(pid, &status);
    if (code == 0)
        code = collect(files, status, path);
    for (int i = 0; i < FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
    return code;
}
