/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot: draws charts with gnuplot(1), which is needed only then. The caller writes a script with
 * its data (gnuplot_text() for user input) and gets a picture. Main thread.
 */
#ifndef IOBENCH_REPORT_GNUPLOT_H
#define IOBENCH_REPORT_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

enum gnuplot_kind { GNUPLOT_SVG, GNUPLOT_PNG, GNUPLOT_PDF };

/* The kind that the suffix of path names ("-": SVG), or -EINVAL with a reason. */
int gnuplot_kind_of(const char *path);

/* Begin a script: size in pixels, no text markup; the kind is gnuplot's variable `kind`. */
void gnuplot_begin(FILE *script, unsigned width, unsigned height);

/* Write text in quotes, without special characters. */
void gnuplot_text(FILE *script, const char *text);

/* Run the script. Returns 0 and the picture, for the caller to free; -ENOENT if gnuplot is not
 * installed, or another negative errno, with a reason. */
int gnuplot_run(const char *script, size_t script_bytes, enum gnuplot_kind kind, char **picture,
                size_t *bytes);

/* The same; the picture replaces path and is of the kind that its suffix names ("-": SVG to
 * standard output). */
int gnuplot_draw(const char *script, size_t script_bytes, const char *path);

#endif
