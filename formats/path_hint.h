/* SPDX-License-Identifier: Apache-2.0
 *
 * path_hint: says why a path opens no data set, and what to type instead. Knows no format: the
 * caller names what it recognises. Off the clock.
 */
#ifndef IOBENCH_FORMATS_PATH_HINT_H
#define IOBENCH_FORMATS_PATH_HINT_H

#include "base/plugin.h"

#include <stddef.h>
#include <stdint.h>

/* Return the format of a path, or NULL. */
typedef const struct plugin *(*path_hint_format)(const char *path);

/* Look at what is there instead of a data set: nothing, or files of other tools, at which this
 * fails. supported: NULL; or nothing recognises the path, so this fails in any case, with these
 * names of formats and what it found: data sets below, shards of another name, a list. Returns 0 or
 * a negative errno with a reason. */
int path_hint_survey(const char *path, path_hint_format recognise, const char *supported);

/* Judge the first bytes of a file, or of a value in a database (path is then ""). Returns 0 if they
 * are of no kind known to be another tool's, else -ENOTSUP with a reason that names the kind and
 * what to do. Any thread. */
int path_hint_foreign(const char *path, const uint8_t *head, size_t bytes);

/* Return what to append to a message that path does not exist: if it is a pattern, how to name its
 * files. Main thread; until the next call. */
const char *path_hint_missing(const char *path);

#endif
