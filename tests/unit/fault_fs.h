/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_fs: a file system whose reads fail, stop short, take long or never end, as a test wants.
 * It speaks the kernel's FUSE protocol itself (linux/fuse.h), so it needs root and /dev/fuse and
 * nothing else. Its files hold bytes computed from their number and the offset, or an image.
 */
#ifndef IOBENCH_TESTS_FAULT_FS_H
#define IOBENCH_TESTS_FAULT_FS_H

#include <stdbool.h>
#include <stdint.h>

struct fault_knobs {
    uint64_t eio_begin, eio_end; /* reads that touch these offsets fail */
    uint32_t eio_every;          /* each so-manieth read fails; 0: none */
    uint32_t short_every;        /* each so-manieth read brings half of what was asked */
    uint64_t delay_ns;           /* of each answer to a read */
    bool stuck;                  /* reads are not answered until this is taken back */
    bool cached;                 /* files opened now go through the page cache: can be mapped */
    bool obeys_interrupts;       /* a stuck read ends when the kernel asks for it */
};

struct fault_fs;

/* file_count files "0", "1", ... of file_bytes each, in folder. image: what each holds, copied;
 * NULL: fault_fs_byte(). is_async: the kernel waits for direct reads in no thread. 0, or a negative
 * errno with a reason when this machine or user cannot mount. */
int fault_fs_mount(struct fault_fs **fs, const char *folder, uint32_t file_count,
                   uint64_t file_bytes, const void *image, bool is_async);
void fault_fs_unmount(struct fault_fs *fs);
void fault_fs_set(struct fault_fs *fs, const struct fault_knobs *knobs);
uint8_t fault_fs_byte(uint32_t file, uint64_t offset);

/* Wait until this process has a single thread: those that readers left behind in the kernel end
 * when their reads are answered. */
void fault_fs_await_threads(void);

#endif
