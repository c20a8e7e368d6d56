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

static const struct {
    const char *suffix, *setting, *begin;
} kinds[] = {
    [GNUPLOT_SVG] = {".svg", "kind='svg'", "<"},
    [GNUPLOT_PNG] = {".png", "kind='png'", "\x89PNG"},
    [GNUPLOT_PDF] = {".pdf", "kind='pdf'", "%PDF"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

int gnuplot_kind_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (strcmp(path, "-") == 0)
        return GNUPLOT_SVG;
    for (int i = 0; i < KINDS; i++)
        if (dot && strcmp(dot, kinds[i].suffix) == 0)
            return i;
    return fail(EINVAL, "%s: unknown suffix: expected .svg, .png or .pdf", path);
}

/* A pixel is 1/96 inch, as in CSS. */
void gnuplot_begin(FILE *script, unsigned width, unsigned height)
{
    fputs(report_script_mark, script);
    fprintf(script,
            "set encoding utf8\n"
            "if (!exists('kind')) kind = 'svg'\n"
            "if (kind eq 'svg') set terminal svg size %u,%u noenhanced font 'sans-serif,12' "
            "background '#ffffff'\n"
            "if (kind eq 'png') set terminal pngcairo size %u,%u noenhanced font 'sans-serif,9' "
            "background '#ffffff'\n"
            "if (kind eq 'pdf') set terminal pdfcairo size %gin,%gin noenhanced font "
            "'sans-serif,9' background '#ffffff'\n",
            width, height, width, height, width / 96.0, height / 96.0);
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

static int run(int files[FILES], enum gnuplot_kind kind, struct child_result *result)
{
    const char *const argv[] = {"gnuplot", "-e", kinds[kind].setting, "-", NULL};
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

/* The output is a picture only if gnuplot printed nothing else. */
static int check_picture(enum gnuplot_kind kind, const char *picture, size_t bytes,
                         const struct child_result *result)
{
    const size_t begin = strlen(kinds[kind].begin);

    if (result->status == 0 && bytes > begin && memcmp(picture, kinds[kind].begin, begin) == 0 &&
        (kind != GNUPLOT_SVG || strstr(picture, "</svg>")))
        return 0;
    return fail(EIO, "gnuplot drew nothing: exit status %d: %s", result->status, result->output);
}

int gnuplot_run(const char *script, size_t script_bytes, enum gnuplot_kind kind, char **picture,
                size_t *bytes)
{
    int files[FILES];
    struct child_result result;
    int code = open_files(files);

    *picture = NULL;
    if (code == 0)
        code = file_write_at(files[IN], script, script_bytes, 0, "gnuplot");
    if (code == 0)
        code = run(files, kind, &result);
    if (code == 0)
        code = (*picture = take(files[OUT], bytes)) ? 0 : -ENOMEM;
    if (code == 0)
        code = check_picture(kind, *picture, *bytes, &result);
    for (int i = 0; i < FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
    if (code) {
        free(*picture);
        *picture = NULL;
    }
    return code;
}

int gnuplot_draw(const char *script, size_t script_bytes, const char *path)
{
    char *picture = NULL;
    size_t bytes;
    const int kind = gnuplot_kind_of(path);
    int code = kind < 0
                   ? kind
                   : gnuplot_run(script, script_bytes, (enum gnuplot_kind)kind, &picture, &bytes);

    if (code == 0)
        code = report_write_file(strcmp(path, "-") == 0 ? "/dev/stdout" : path, picture, bytes);
    free(picture);
    return code;
}
