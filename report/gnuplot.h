/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot: pictures are drawn by the program of that name, which is asked for when one is drawn and
 * not before. Whoever draws writes a program text for it (text and data, gnuplot_text() for what a
 * user typed) and gets a file. Main thread.
 */
#ifndef IOBENCH_REPORT_GNUPLOT_H
#define IOBENCH_REPORT_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

/* Choose SVG of so many pixels, texts as they are. */
void gnuplot_begin(FILE *script, unsigned width, unsigned height);

/* A text in quotes, in which nothing has a meaning. */
void gnuplot_text(FILE *script, const char *text);

/* Draw; the SVG replaces what path holds ("-": it is written to the standard output). 0, -ENOENT
 * where gnuplot is not installed, or another negative errno, with a reason. */
int gnuplot_draw(const char *script, size_t bytes, const char *path);

#endif
