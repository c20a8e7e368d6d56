/* SPDX-License-Identifier: Apache-2.0
 *
 * browser: a page as PNG or PDF, drawn by Chromium, which is needed only then. The page is a
 * report's, complete in itself. Chromium makes links and sockets, so the process is not confined.
 * The browser gets a profile of its own that is removed afterwards. Main thread.
 */
#ifndef IOBENCH_REPORT_BROWSER_H
#define IOBENCH_REPORT_BROWSER_H

#include <stddef.h>

enum browser_kind { BROWSER_PNG, BROWSER_PDF };

enum { BROWSER_WIDTH = 1200, BROWSER_HEIGHT_MAX = 16000 }; /* pixels of a PNG */

/* make_page: writes the page to this path. Returns 0 and the file, for the caller to free, or a
 * negative errno with a reason; -ENOENT if no browser is installed. *cut: pixels of the page below
 * the end of the PNG. */
int browser_draw(int (*make_page)(void *context, const char *path), void *context,
                 enum browser_kind kind, char **file, size_t *file_bytes, unsigned *cut);

#endif
