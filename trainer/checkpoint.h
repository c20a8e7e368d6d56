/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint: everything needed to resume training bit for bit, in one file that is either complete
 * or absent (base/file.h: draft, fsync, rename). Loading checks kind, version, sizes and CRC.
 *
 * The file, little-endian: "IOBENCHK", u32 version, u32 side, u32 classes, u32 0, network name (32
 * bytes), u64 each of parameter floats, statistic floats, seed, global batch size, epoch, step,
 * elapsed nanoseconds, samples, and f64 the rate of the last step; 1,024 bytes of settings, a text
 * padded with zeros (not in version 1); then the floats of parameters, momenta and statistics in
 * the canonical layout of trainer/graph.h; then u32 CRC-32C of everything before it.
 */
#ifndef IOBENCH_TRAINER_CHECKPOINT_H
#define IOBENCH_TRAINER_CHECKPOINT_H

#include <stdint.h>

enum { CHECKPOINT_NAME_BYTES = 32, CHECKPOINT_SETTINGS_BYTES = 1024 };

struct checkpoint {
    char network[CHECKPOINT_NAME_BYTES];
    uint32_t side, classes;
    uint64_t parameter_floats, statistic_floats;
    uint64_t seed, batch_size; /* samples per update, of all ranks */
    uint64_t epoch, step;      /* finished */
    uint64_t elapsed_ns, samples;
    double rate_before;
    /* Of the training, a line "option value" each; "": unknown. Text of a file: escape it. */
    char settings[CHECKPOINT_SETTINGS_BYTES];
};

/* How many floats it has: parameters, momenta and statistics, one after the other. */
uint64_t checkpoint_floats(const struct checkpoint *checkpoint);

/* Check that a checkpoint may replace the file at path: only another one, or an empty file. Returns
 * 0 or a negative errno with a reason. */
int checkpoint_check_replaced(const char *path);

/* Returns 0 or a negative errno with a reason; on failure a previous file stays. The caller sees to
 * it that no other process writes there. */
int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *floats);

/* wanted: network, side, classes and numbers of floats. Returns -EINVAL for a checkpoint that
 * differs in any of these, -EBADMSG for a damaged one. The floats are overwritten in either case.
 */
int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *floats);

#endif
