/* SPDX-License-Identifier: Apache-2.0
 *
 * file: paths, regular files by path, and files of the kernel. Folders and the names in them:
 * base/folder.h. Files that appear when they are complete: base/draft.h.
 * Every failure carries a reason with the path, unless it says otherwise.
 */
#ifndef IOBENCH_BASE_FILE_H
#define IOBENCH_BASE_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Join with one slash; free() the result; NULL with a reason. */
char *file_join(const char *folder, const char *name);
char *file_format_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool file_is_folder(const char *path);
bool file_exists(const char *path);

/* ---- opening ----
 *
 * What lies under a name may be a FIFO or a device, put there by mistake or to harm: opening it
 * must neither wait nor do anything. So regular files only are opened, and the reason says what is
 * there instead. flags: O_RDONLY or O_RDWR, with O_DIRECT or O_NOFOLLOW; never one that makes or
 * cuts the file (base/draft.h, folder_create_file()). status may be NULL. A descriptor or a
 * negative errno: -EISDIR for a folder, -EINVAL for what is no file. */
enum { FILE_SAFE_FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

int file_open(const char *path, int flags, struct stat *status);
int file_open_at(int folder, const char *name, int flags, const char *path, struct stat *status);
/* "a FIFO" */
const char *file_kind_text(mode_t mode);

/* The same without a look before and without a reason, for what may be missing: files of the kernel
 * below /proc and /sys, and files kept from before. A descriptor or a negative errno; NULL. */
int file_open_quietly(const char *path, int flags);
FILE *file_stream_kernel(const char *path);

/* May what this program finds beside data be believed? Its owner must be root, this user or the
 * owner of the data (root; NULL: nobody), and not everybody may write to it. 0, or -EPERM with a
 * reason. */
int file_trusted(const struct stat *file, const struct stat *root, const char *path);

/* The whole file, NUL-terminated behind its end; refused above limit. free() it. */
int file_load(const char *path, size_t limit, char **text, size_t *bytes);

/* pread until bytes are there. Returns the count, less than bytes only at end of file. */
ssize_t file_read_at(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path);
int file_write_at(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path);

/* Free bytes that this user may write below path. */
int file_free_bytes(const char *path, uint64_t *bytes);

#endif
