/* SPDX-License-Identifier: Apache-2.0
 *
 * file: paths, regular files by path, and kernel files. For folders and the names in them see
 * base/folder.h; for files that appear when complete, base/draft.h. Every failure has a reason with
 * the path unless stated otherwise.
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

/* Join with one slash. Returns a malloc()ed path, or NULL with a reason. */
char *file_join(const char *folder, const char *name);
char *file_format_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Return the last component of a path. */
const char *file_name(const char *path);

/* Return the path of a file in the user's cache folder, $XDG_CACHE_HOME/iobench or
 * ~/.cache/iobench; "" is the folder itself. malloc()ed, or NULL with a reason: neither variable is
 * an absolute path. */
char *file_cache_path(const char *name);

bool file_is_folder(const char *path);
bool file_exists(const char *path);

/* ---- opening ----
 *
 * A name may lead to a FIFO or a device, by mistake or malice: opening it must neither block nor
 * have side effects. So only regular files are opened, and the reason says what was found instead.
 * flags: O_RDONLY or O_RDWR, with O_DIRECT, O_NOFOLLOW or FILE_NOATIME; never flags that create or
 * truncate (base/draft.h, folder_create_file()). status may be NULL. Returns a descriptor or a
 * negative errno: -EISDIR for a folder, -EINVAL for other non-files. */
enum {
    FILE_SAFE_FLAGS = O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
    /* Reads do not write the time of access, if the user may ask for that: owner or root. */
    FILE_NOATIME = O_NOATIME,
};

int file_open(const char *path, int flags, struct stat *status);
int file_open_at(int folder, const char *name, int flags, const char *path, struct stat *status);
/* "a FIFO" */
const char *file_kind_text(mode_t mode);

/* Open without that check, and record no reason: for files that may be missing, such as kernel
 * files below /proc and /sys and files kept from earlier runs. Return a descriptor or a negative
 * errno; a stream or NULL. */
int file_open_quietly(const char *path, int flags);
/* Set the status flags of an open file; FILE_NOATIME, if that is allowed. Returns 0 or a negative
 * errno without a reason. */
int file_set_flags(int fd, int flags);
FILE *file_stream_kernel(const char *path);
/* Read the beginning of a file and end it with a zero, without allocating; text is empty if it
 * cannot be read. */
void file_read_begin(const char *path, char *text, size_t bytes);

/* Read the first line of a kernel file whose path this formats. Returns false if it does not exist.
 */
bool file_peek(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Return how far the kernel reads ahead of a file: of its file system's device, else of the disk
 * that its partition is on; 0: unknown. sys: "/sys". */
uint64_t read_ahead_bytes(const char *sys, int fd);

/* Open the character device of this number, and nothing else, to read. Returns a descriptor or a
 * negative errno without a reason: -ENODEV if path leads to something else. */
int file_open_device(const char *path, dev_t number);

/* Can a file of ours found beside data be trusted? Its owner must be root, this user or the owner
 * of the data (root; NULL: nobody), and it must not be world-writable. Returns 0, or -EPERM with a
 * reason. */
int file_trusted(const struct stat *file, const struct stat *root, const char *path);

/* Load a whole file, with a NUL appended; refuse more than `limit` bytes. Free *text. */
int file_load(const char *path, size_t limit, char **text, size_t *bytes);

/* Read a whole open file, from its start, with a NUL appended; name: for reasons. free() it; NULL
 * with a reason. */
char *file_read_all(int fd, size_t *bytes, const char *name);

/* Read until `bytes` are there. Returns the count, less than `bytes` only at end of file. */
ssize_t file_read_at(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path);
int file_write_at(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path);

/* Free space below path for this user. */
int file_free_bytes(const char *path, uint64_t *bytes);

/* Is a user-named output not a file: /dev/stdout, a pipe, a terminal? */
bool file_is_stream(const char *path);
/* Open for writing. A FIFO without a reader fails after ten seconds. Returns a descriptor or a
 * negative errno with a reason. */
int file_open_stream(const char *path);

/* Return whether a folder of $PATH has this program. */
bool file_in_path(const char *program);

/* ---- text_stream ----
 *
 * A stream into memory. Unlike glibc's open_memstream(), which silently drops what it has no
 * memory for, it fails: ferror() is set. One thread at a time. */

struct text_stream {
    FILE *stream; /* for writing */
    char *text;   /* set by text_stream_flush(), NUL-terminated; may be NULL before */
    size_t bytes, room;
};

/* The struct must not move until closed. Both return 0 or -ENOMEM with a reason. Close after every
 * open, failed ones too. */
int text_stream_open(struct text_stream *stream);
int text_stream_flush(struct text_stream *stream);

/* Flush and close. Returns the text, for the caller to free, or NULL on failure. */
int text_stream_take(struct text_stream *stream, char **text, size_t *bytes);
void text_stream_close(struct text_stream *stream);

#endif
