/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint: all that training needs to go on bit for bit, in one file that is there whole or not
 * at all (base/file.h: a draft, fsync, rename). It is checked on load: kind, version, sizes, CRC.
 *
 * The file, little-endian: "IOBENCHK", u32 version, u32 side, u32 classes, u32 0, network name (32
 * bytes), u64 each of parameter floats, statistic floats, seed, global batch size, epoch, step,
 * elapsed nanoseconds, samples, and f64 the rate of the last step; then the floats of parameters,
 * momenta and statistics in the canonical layout of trainer/graph.h; then u32 CRC-32C of all
 * before.
 */
#ifndef IOBENCH_TRAINER_CHECKPOINT_H
#define IOBENCH_TRAINER_CHECKPOINT_H

#include <stdint.h>

enum { CHECKPOINT_NAME_BYTES = 32 };

struct checkpoint {
    char network[CHECKPOINT_NAME_BYTES];
    uint32_t side, classes;
    uint64_t parameter_floats, statistic_floats;
    uint64_t seed, batch_size; /* of all ranks together */
    uint64_t epoch, step;      /* finished */
    uint64_t elapsed_ns, samples;
    double rate_before;
};

/* 0 or a negative errno with a reason; a file that stood there before stays on failure. */
int checkpoint_write(const char *path, const struct checkpoint *checkpoint, const float *parameters,
                     const float *momenta, const float *statistics);

/* wanted says network, side, classes and sizes of the arrays; a checkpoint of anything else is
 * refused with -EINVAL, a damaged one with -EBADMSG. The arrays are filled in either case. */
int checkpoint_read(const char *path, const struct checkpoint *wanted,
                    struct checkpoint *checkpoint, float *parameters, float *momenta,
                    float *statistics);

#endif
