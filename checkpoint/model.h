/* SPDX-License-Identifier: Apache-2.0
 *
 * model: which files a checkpoint of a language model has, how large they are, and which rank
 * writes each: 2 bytes a parameter of weights and 12 of optimizer state, as MLPerf Storage v3.0
 * lays them out. Pure.
 *
 * ZeRO 3: each rank writes its share of the weights and of the optimizer. ZeRO 1: the ranks of the
 * first data-parallel group write the weights, a file per layer and tensor-parallel rank; every
 * rank writes its share of the optimizer. Ranks are numbered tensor first, then pipeline, then
 * data.
 */
#ifndef IOBENCH_CHECKPOINT_MODEL_H
#define IOBENCH_CHECKPOINT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_size {
    const char *name; /* "8b" */
    uint64_t hidden, feed_forward, layers, heads, key_value_heads, vocabulary;
    uint32_t tensor, pipeline, data; /* parallel; their product is the number of ranks */
    uint32_t zero;                   /* ZeRO stage */
};

/* MLPerf Storage v3.0's; ends with a NULL name. */
extern const struct model_size model_sizes[];

enum { MODEL_NAME_BYTES = 32, MODEL_RANKS_MAX = 65536, MODEL_BLOCK_BYTES = 4096 };

struct model_choice {
    char name[MODEL_NAME_BYTES];
    const struct model_size *size; /* NULL: the user's own, sharded by ZeRO 3 */
    uint64_t parameters;
};

/* Parse "8b" or "NAME,params=1.3b". Returns 0, or -EINVAL with a reason. */
int model_choose(const char *text, struct model_choice *choice);

struct model_file {
    char name[32];
    uint32_t rank; /* that writes it */
    uint64_t bytes;
};

struct model_files {
    struct model_file *list; /* a rank's files follow each other in the order it writes them */
    uint32_t count, ranks;
    uint64_t bytes;      /* of all files */
    uint64_t full_bytes; /* without scaling */
    bool is_published;   /* ranks and layout are MLPerf's */
    uint32_t tensor, pipeline, data, zero;
};

struct model_request {
    struct model_choice model;
    uint32_t ranks;  /* to shard by ZeRO 3 over; 0: as published (own models: 8) */
    uint32_t subset; /* write only the files of this many first ranks; 0: all */
    double scale;    /* of each file, at most 1 */
    uint64_t bytes;  /* of all files together, instead of scale; 0: by scale */
};

/* Each file is rounded up to MODEL_BLOCK_BYTES, as O_DIRECT needs. Free files->list. Returns 0 or a
 * negative errno with a reason. */
int model_list(const struct model_request *request, struct model_files *files);

/* May a file of a checkpoint have this name? */
bool model_is_file_name(const char *name);

#endif
