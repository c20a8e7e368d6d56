/* SPDX-License-Identifier: Apache-2.0
 * foreign_format: recognises data sets of kinds that iobench does not read, by their content. */
#ifndef IOBENCH_FORMATS_FOREIGN_FORMAT_H
#define IOBENCH_FORMATS_FOREIGN_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Judge the first bytes of a file, or of a value in a database (path is then ""). Returns 0 if they
 * are not recognised, else -ENOTSUP with a reason that names the kind and what to do. Any thread.
 */
int foreign_format_refuse(const char *path, const uint8_t *head, size_t bytes);

/* The same of a file that no format claims and that is compressed: a tar, that only pack reads, or
 * a shard under another name. */
int foreign_format_refuse_archive(const char *path, const uint8_t *head, size_t bytes);

enum { FOREIGN_HEAD_BYTES = 1024 };

#endif
