/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gnuplot.h"

#include "base/child.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHART_BYTES_MAX = 256 << 20 };

static const uint64_t time_limit_ns = UINT64_C(120000000000);

void gnuplot_begin(FILE *script, unsigned width, unsigned height)
{
    fprintf(script,
            "set terminal svg size %u,%u noenhanced font 'sans-serif,12' background '#ffffff'\n"
            "set encoding utf8\n",
            width, height);
}

/* In single quotes only the quote itself is special. */
void gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (text = escape_shown(text); *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc(*text, script);
    }
    fputc('\'', script);
}

/* Script and chart are unnamed files, so nothing is left behind. */
enum { IN, OUT, FILES };

static int open_files(int files[FILES])
{
    for (int i = 0; i < FILES; i++)
        files[i] = -1;
    for (int i = 0; i < FILES; i++)
        if ((files[i] = memfd_create("gnuplot", MFD_CLOEXEC)) < 0)
            return fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno));
    return 0;
}

static bool is_too_large(int file)
{
    struct stat status;

    return fstat(file, &status) || status.st_size > CHART_BYTES_MAX;
}

static bool draws_without_end(void *context)
{
    const int *files = context;

    return is_too_large(files[OUT]);
}

static int run(int files[FILES], struct child_result *result)
{
    static const char *const argv[] = {"gnuplot", "-", NULL};
    const struct child_task task = {.argv = argv,
                                    .input = files[IN],
                                    .output = files[OUT],
                                    .timeout_ns = time_limit_ns,
                                    .stop = draws_without_end,
                                    .context = files};
    int code = child_run(&task, result);

    if (code == -ENOENT)
        return fail(ENOENT, "gnuplot is required for charts and not installed: apt-get install "
                            "gnuplot-nox or similar");
    if ((code == 0 || code == -EINTR) && is_too_large(files[OUT]))
        return fail(EFBIG, "gnuplot: the chart exceeds %d MiB", CHART_BYTES_MAX >> 20);
    return code;
}

/* Contents of one of our files, to be freed. */
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

static int write_svg(const char *svg, size_t bytes, const char *path)
{
    if (strcmp(path, "-") != 0)
        return report_write_file(path, svg, bytes);
    return report_write_file("/dev/stdout", svg, bytes);
}

/* The output is a valid chart only if gnuplot printed nothing else. */
static int collect(const int files[FILES], const struct child_result *result, const char *path)
{
    size_t bytes;
    char *svg = take(files[OUT], &bytes);
    int code = svg ? 0 : -ENOMEM;

    if (code == 0 && (result->status != 0 || !strstr(svg, "</svg>")))
        code =
            fail(EIO, "gnuplot drew nothing: exit status %d: %s", result->status, result->output);
    if (code == 0)
        code = write_svg(svg, bytes, path);
    free(svg);
    return code;
}

int gnuplot_draw(const char *script, size_t bytes, const char *path)
{
    int files[FILES];
    struct child_result result;
    int code = open_files(files);

    if (code == 0)
        code = file_write_at(files[IN], script, bytes, 0, "gnuplot");
    if (code == 0)
        code = run(files, &result);
    if (code == 0)
        code = collect(files, &result, path);
    for (int i = 0; i < FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
    return code;
}
