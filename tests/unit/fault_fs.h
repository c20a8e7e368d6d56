/* SPDX-License-Identifier: Apache-2.0
 * fault_fs: a file system whose reads fail, stop short, take long or never end, under a test's
 * control. It speaks the kernel's FUSE protocol (linux/fuse.h), so it needs only root and
 * /dev/fuse. Its files hold bytes computed from their number and the offset, or an image.
 */
#ifndef IOBENCH_TESTS_FAULT_FS_H
#define IOBENCH_TESTS_FAULT_FS_H

#include <stdbool.h>
#include <stdint.h>

struct fault_knobs {
    uint64_t eio_begin, eio_end; /* reads that touch these offsets fail */
    uint32_t eio_every;          /* every Nth read fails; 0: none */
    uint32_t short_every;        /* every Nth read returns half of the bytes */
    uint64_t delay_ns;           /* of each reply to a read */
    bool stuck;                  /* reads get no reply until this is cleared */
    bool cached;                 /* files opened from now on can be mapped (page cache) */
    bool obeys_interrupts;       /* a stuck read ends if the kernel interrupts it */
};

struct fault_fs;

/* Mount file_count files "0", "1", ... of file_bytes each at folder. image: content of each file,
 * copied; NULL: fault_fs_byte(). is_async: no kernel thread waits for direct reads. Returns 0, or a
 * negative errno with a reason if this machine or user cannot mount. */
int fault_fs_mount(struct fault_fs **fs, const char *folder, uint32_t file_count,
                   uint64_t file_bytes, const void *image, bool is_async);
void fault_fs_unmount(struct fault_fs *fs);
void fault_fs_set(struct fault_fs *fs, const struct fault_knobs *knobs);
uint8_t fault_fs_byte(uint32_t file, uint64_t offset);

/* Wait until this process has a single thread: threads abandoned in the kernel end when their reads
 * complete. */
void fault_fs_await_threads(void);

#endif
