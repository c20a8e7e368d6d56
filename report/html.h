/* SPDX-License-Identifier: Apache-2.0
 *
 * html: writes a page that is complete in itself: report/page/ (template, style, program) and the
 * dygraphs library, embedded when iobench is built, one island of JSON, and pictures. Text from
 * outside is escaped here, or is data that report/page/page.js shows as text. Main thread.
 */
#ifndef IOBENCH_REPORT_HTML_H
#define IOBENCH_REPORT_HTML_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Sections of the page that the caller fills with pictures. */
enum html_section {
    HTML_TIME,
    HTML_SCALING,
    HTML_LATENCY,
    HTML_SHUFFLE,
    HTML_OTHERS,
    HTML_SECTIONS
};

/* Write untrusted text, escaped. */
void html_text(FILE *page, const char *text);

/* Write a figure. words: text alternative of the picture. svg: NULL shows the words alone.
 * chart: index in the data island, drawn by page.js instead of the picture; -1: none. */
void html_figure(FILE *page, const char *title, const char *words, const char *svg, size_t bytes,
                 int chart);

/* Write the page. words: the answer for readers without scripts, and sections: HTML, NULL
 * where empty.
 * Returns 0 or a negative errno with a reason. */
int html_write(FILE *page, const char *title, const char *words,
               const char *const sections[HTML_SECTIONS], const json_t *data);

#endif
