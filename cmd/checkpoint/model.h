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
#ifndef IOBENCH_CMD_CHECKPOINT_MODEL_H
#define IOBENCH_CMD_CHECKPOINT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_size {
    const char *name; /* "8b" */
    uint64_t hidden, feed_forward, layers, heads, key_value_heads, vocabulary;
    uint32_t tensor, pipeline, data; /* parallel; their product is the number of ranks */
    uint32_t zero;                   /* ZeRO stage */
};

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
    uint32_t rank; /* the rank that writes the file */
    uint64_t bytes;
};

struct model_files {
    struct model_file *list; /* by rank, each rank's files in the order it writes them */
    uint32_t count, ranks;
    uint64_t bytes;      /* of all files */
    uint64_t full_bytes; /* without scaling */
    bool is_published;   /* ranks and layout are MLPerf's */
    uint32_t tensor, pipeline, data, zero;
};

struct model_request {
    struct model_choice model;
    uint64_t ranks;  /* number of ranks for ZeRO 3 sharding; 0: as published (own models: 8) */
    uint64_t subset; /* write only the files of the first `subset` ranks; 0: all */
    double scale;    /* of each file's size, at most 1 */
    uint64_t bytes;  /* total size, overrides scale; 0: use scale */
};

/* List the files; each is rounded up to MODEL_BLOCK_BYTES, as O_DIRECT requires. Free files->list.
 * Returns 0 or a negative errno with a reason. */
int model_list(const struct model_request *request, struct model_files *files);

/* Return whether a checkpoint file may have this name. */
bool model_is_file_name(const char *name);

#endif
