/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot: draws charts with gnuplot(1), which is needed only then. The caller writes a script with
 * its data (gnuplot_text() for user input) and gets a file. Main thread.
 */
#ifndef IOBENCH_REPORT_GNUPLOT_H
#define IOBENCH_REPORT_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

/* Select SVG output of this size in pixels, without text markup. */
void gnuplot_begin(FILE *script, unsigned width, unsigned height);

/* Write text in quotes, without special characters. */
void gnuplot_text(FILE *script, const char *text);

/* Run the script; the SVG replaces path ("-": standard output). Returns 0, -ENOENT if gnuplot is
 * not installed, or another negative errno, with a reason. */
int gnuplot_draw(const char *script, size_t bytes, const char *path);

#endif
