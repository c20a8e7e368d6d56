/* SPDX-License-Identifier: Apache-2.0
 *
 * file: whole files, folders, and files that appear only when they are complete.
 * Every failure carries a reason with the path.
 */
#ifndef IOBENCH_BASE_FILE_H
#define IOBENCH_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Join with one slash; free() the result; NULL with a reason. */
char *file_join(const char *folder, const char *name);
char *file_format_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool file_is_folder(const char *path);
bool file_exists(const char *path);

/* mkdir -p. 0 or a negative errno. */
int file_make_folders(const char *path);
int file_make_parent(const char *path); /* the folder that a file of this path lies in */
int file_sync_parent(const char *path); /* fsync it, so that names in it last */

/* The whole file, NUL-terminated behind its end; refused above limit. free() it. */
int file_load(const char *path, size_t limit, char **text, size_t *bytes);

/* pread until bytes are there. Returns the count, less than bytes only at end of file. */
ssize_t file_read_at(int fd, void *buffer, size_t bytes, uint64_t offset, const char *path);
int file_write_at(int fd, const void *buffer, size_t bytes, uint64_t offset, const char *path);

/* A file written under a temporary name beside path, and renamed over it when committed. */
struct file_draft {
    int fd;
    char *path;
    char *draft_path; /* "PATH.partial" */
};

int file_draft_open(struct file_draft *draft, const char *path);
int file_draft_commit(struct file_draft *draft); /* fsync, close, rename, fsync of the folder */
void file_draft_abandon(
    struct file_draft *draft); /* close and unlink; also after a commit: no-op */

/* Free bytes that this user may write below path. */
int file_free_bytes(const char *path, uint64_t *bytes);

#endif
