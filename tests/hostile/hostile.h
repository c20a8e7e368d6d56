/* SPDX-License-Identifier: Apache-2.0
 *
 * hostile: data sets and environments that an attacker or an accident could create, and every
 * command of the program run on each. Uses only CRC-32C and the generated images of the program's
 * code. One thread.
 *
 * A function creates the set in an empty working folder. Each command must end by itself, with exit
 * status 0, 1 or 2, a reason unless 0, no control characters in its output, and no change to any
 * file except its own outputs.
 */
#ifndef IOBENCH_TESTS_HOSTILE_H
#define IOBENCH_TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Expected outcome of a command. */
enum hostile_verdict {
    EITHER,  /* any of the three exit statuses */
    REFUSED, /* every command that reads it must fail */
    DAMAGED, /* verify and a run that checks every record must fail */
    FINE,    /* commands that read it must succeed */
};

/* Which commands apply, and when to run a set. */
enum hostile_kind {
    KIND_DATA,       /* every command that takes a data set */
    KIND_RESULT,     /* compare and plot */
    KIND_JOB,        /* iobench FILE */
    KIND_CHECKPOINT, /* infer --checkpoint */
    KIND_OWN,        /* only its own command */
};

enum hostile_flags {
    LONG_RUN = 1,   /* only with IOBENCH_LONG=1 */
    NEEDS_ROOT = 2, /* skipped for other users */
    FRESH = 4,      /* recreated before each command */
    AS_NOBODY = 8,  /* commands run as a user other than root */
    CLOSED = 16,    /* SIGCHLD is inherited as ignored */
};

/* One act of making a set. */
struct hostile_act {
    enum {
        ACT_END,
        ACT_CALL,
        ACT_BYTES,
        ACT_FOLDER,
        ACT_LINK,
        ACT_FIFO,
        ACT_SPARSE,
        ACT_JPEG,
        ACT_PATCH,
        ACT_CUT,
    } kind;
    const char *path, *bytes;
    size_t count;    /* of bytes */
    uint64_t number; /* a length, an offset, the index of an image, or what a function takes */
    void (*call)(const struct hostile_act *act);
    void (*change)(uint8_t *page); /* for call */
    const void *with;              /* likewise */
};

#define BYTES(STRING) .bytes = (STRING), .count = sizeof(STRING) - 1
#define TEXT(PATH, STRING) .kind = ACT_BYTES, .path = (PATH), BYTES(STRING)
#define FOLDER(PATH) .kind = ACT_FOLDER, .path = (PATH)
#define LINK(TARGET, PATH) .kind = ACT_LINK, .path = (PATH), .bytes = (TARGET)
#define FIFO(PATH) .kind = ACT_FIFO, .path = (PATH)
#define SPARSE(PATH, LENGTH) .kind = ACT_SPARSE, .path = (PATH), .number = (LENGTH)
#define JPEG(PATH, INDEX) .kind = ACT_JPEG, .path = (PATH), .number = (INDEX)
#define PATCH(PATH, OFFSET, STRING) \
    .kind = ACT_PATCH, .path = (PATH), .number = (uint64_t)(OFFSET), BYTES(STRING)
#define CUT(PATH, LENGTH) .kind = ACT_CUT, .path = (PATH), .number = (LENGTH)
#define CALL(FUNCTION) .kind = ACT_CALL, .call = (FUNCTION)
#define CALL_WITH(FUNCTION, NUMBER) CALL(FUNCTION), .number = (uint64_t)(NUMBER)

struct hostile_set {
    const char *name, *summary;
    void (*make)(void); /* in the set's own folder, which is empty; or NULL */
    enum hostile_verdict verdict;
    unsigned flags;
    enum hostile_kind kind;
    const char *operand; /* below the set's folder; NULL: the folder itself */
    const char *command; /* KIND_OWN: words; @ is the operand, % the output folder */
    const char
        *allowed; /* below the set's folder: the set's own command may change it and its contents */
    const char *kept;              /* but must not change this */
    struct hostile_act acts[10];   /* after make() */
    void (*change)(unsigned turn); /* while commands run, change files: turn 0, 1, ... */
};

void hostile_mode(const struct hostile_act *act); /* for CALL_WITH: chmod() */

/* Make the set in the working folder. */
void hostile_make(const struct hostile_set *set);

/* SET(NAME, SUMMARY, MAKE, VERDICT[, more members in order or by name]) */
#define SET(NAME, SUMMARY, MAKE, ...)                                                \
    {                                                                                \
        .name = (NAME), .summary = (SUMMARY), .make = (MAKE), .verdict = __VA_ARGS__ \
    }

/* Each array ends with an empty row. */
extern const struct hostile_set hostile_records[], hostile_lmdb[], hostile_tar[], hostile_trees[],
    hostile_images[], hostile_sidecars[], hostile_outputs[], hostile_targets[];

/* ---- making files: on a system error, helpers end the program ---- */

struct blob {
    uint8_t *bytes;
    size_t count, room;
};

void blob_add(struct blob *blob, const void *bytes, size_t count);
void blob_text(struct blob *blob, const char *text);
void blob_le32(struct blob *blob, uint32_t value);
void blob_le64(struct blob *blob, uint64_t value);
void blob_be32(struct blob *blob, uint32_t value);
void blob_fill(struct blob *blob, int byte, size_t count);
void blob_save(struct blob *blob, const char *path); /* write the file and free the blob */

void put_file(const char *path, const void *bytes, size_t count);
void put_text(const char *path, const char *text);
void put_folder(const char *path);
void put_link(const char *target, const char *path);
void put_fifo(const char *path);
void put_sparse(const char *path, uint64_t bytes);
void copy_source(const char *from, const char *path); /* from: below the source folder */
void load_file(const char *path, struct blob *blob);
/* Replace the first of these bytes in path; negative offsets count from the end. */
void patch_file(const char *path, int64_t offset, const void *bytes, size_t count);
void cut_file(const char *path, uint64_t bytes);

/* Return a generated JPEG of 4 KB; label is below 10. Valid until the next call. */
const uint8_t *sample_jpeg(uint64_t index, size_t *count);
void put_jpeg(const char *path, uint64_t index);

/* Well-formed records, for tests to damage. */
void add_tfrecord(struct blob *blob, const void *payload, size_t count);
void add_example(struct blob *blob, uint64_t index, uint64_t label); /* a TFRecord with an image */
void add_recordio(struct blob *blob, uint64_t index);
void add_member(struct blob *blob, const char *name, char type, uint64_t bytes);
void add_tar_image(struct blob *blob, const char *name, uint64_t index);
void add_tar_end(struct blob *blob);
void tar_checksum(uint8_t header[512]); /* correct it */

/* Fork a child that calls change() forever. Return after its first call has finished. */
pid_t keep_moving(void (*change)(unsigned turn));

/* ---- running ---- */

struct command_result {
    int status;  /* of wait() */
    bool late;   /* killed after the limit */
    char *text;  /* standard output and error */
    char *error; /* standard error */
};

enum { COMMAND_WORDS = 40 };
/* Split template at blanks into words[count] and on, NULL at the end, with the first @ or % of each
 * word replaced; empty words are dropped. */
void command_words(char *words[COMMAND_WORDS], int count, const char *template, const char *at,
                   const char *percent);
void command_words_free(char *words[COMMAND_WORDS]);
/* Run words, which end with NULL. */
void command_run(char *const words[], unsigned flags, struct command_result *result);
/* Can the user of AS_NOBODY start it? Not in a folder that others cannot enter, as /root. */
bool nobody_can_run(const char *path);

/* Run the program with these words, separated by blanks. Any failure ends the test. */
void run_program(const char *words);
void command_free(struct command_result *result);
/* Return the fault in status and output, or NULL. Static memory. */
const char *command_fault(const struct command_result *result);

/* ---- snapshots of folders ---- */

struct tree {
    char **lines; /* sorted: one per file, with its kind, owner, mode, size, times and contents */
    size_t count, room;
};

/* Record everything below folder except the program's outputs and the allowed path (NULL: none). */
void tree_take(struct tree *tree, const char *folder, const char *allowed, const char *kept);
void tree_free(struct tree *tree);
/* Return the first difference, or NULL. Static memory. */
const char *tree_difference(const struct tree *before, const struct tree *after);

__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...);

#endif
