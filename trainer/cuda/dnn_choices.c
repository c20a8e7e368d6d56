/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/dnn.h"

#include "base/clock.h"
#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_VERSION = 1, FILE_BYTES_MAX = 64 << 20, ENGINES_MAX = 1 << 20 };
enum { LOCK_TRIES = 6000, LOCK_PAUSE_NS = 10000000 }; /* one minute, since the disk may be busy */

/* The file is not trusted. */
json_t *dnn_choices_read(const char *path)
{
    struct stat status;
    int file = path ? file_open(path, O_RDONLY, &status) : -1;
    json_t *whole =
        file >= 0 && file_trusted(&status, NULL, path) == 0 && status.st_size <= FILE_BYTES_MAX
            ? json_loadfd(file, JSON_REJECT_DUPLICATES, NULL)
            : NULL;
    json_t *rows = json_object_get(whole, "plans");

    if (file >= 0)
        close(file);
    rows = json_integer_value(json_object_get(whole, "version")) == FILE_VERSION &&
                   json_is_object(rows)
               ? json_incref(rows)
               : json_object();
    json_decref(whole);
    if (!rows)
        fail(ENOMEM, "out of memory for plans");
    return rows;
}

/* ---- rows: {"engine": 12, "knobs": [[type, value], ...], "candidates": 16, "milliseconds": 0.2}
 */

static bool get_number(const json_t *value, int64_t least, int64_t most, int64_t *number)
{
    *number = json_integer_value(value);
    return json_is_integer(value) && *number >= least && *number <= most;
}

static bool get_knobs(const json_t *knobs, struct dnn_choice *choice)
{
    const size_t count = json_array_size(knobs);

    if (!json_is_array(knobs) || count > DNN_KNOBS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *knob = json_array_get(knobs, i);
        int64_t type;
        if (json_array_size(knob) != 2 ||
            !get_number(json_array_get(knob, 0), 0, INT32_MAX, &type) ||
            !get_number(json_array_get(knob, 1), INT32_MIN, INT32_MAX, &choice->knobs[i].value))
            return false;
        choice->knobs[i].type = (int32_t)type;
    }
    choice->knob_count = (uint32_t)count;
    return true;
}

bool dnn_choices_get(const json_t *choices, const char *key, struct dnn_choice *choice,
                     uint32_t *candidates, double *milliseconds)
{
    const json_t *row = json_object_get(choices, key);
    int64_t number;

    *choice = (struct dnn_choice){0};
    if (!get_number(json_object_get(row, "engine"), 0, ENGINES_MAX, &choice->engine) ||
        !get_number(json_object_get(row, "candidates"), 1, DNN_CONFIGS_MAX, &number) ||
        !get_knobs(json_object_get(row, "knobs"), choice))
        return false;
    *candidates = (uint32_t)number;
    *milliseconds = json_real_value(json_object_get(row, "milliseconds"));
    return isfinite(*milliseconds) && *milliseconds >= 0;
}

int dnn_choices_put(json_t *choices, const char *key, const struct dnn_choice *choice,
                    uint32_t candidates, double milliseconds)
{
    json_t *knobs = json_array();
    int failed = 0;

    for (uint32_t i = 0; i < choice->knob_count; i++)
        failed |= json_array_append_new(knobs, json_pack("[i, I]", (int)choice->knobs[i].type,
                                                         (json_int_t)choice->knobs[i].value));
    json_t *row = json_pack("{s:I, s:o, s:i, s:f}", "engine", (json_int_t)choice->engine, "knobs",
                            knobs, "candidates", (int)candidates, "milliseconds", milliseconds);
    if (failed || json_object_set_new(choices, key, row))
        return fail(ENOMEM, "out of memory for plans");
    return 0;
}

/* A null row counts as none; a missing one would be taken from the file again. */
int dnn_choices_drop(json_t *choices, const char *key)
{
    return json_object_set_new(choices, key, json_null()) ? fail(ENOMEM, "out of memory for plans")
                                                          : 0;
}

int dnn_choices_write(json_t *choices, const char *path)
{
    struct file_lock lock;
    struct file_draft draft;
    char name[1200];

    /* Serialise concurrent jobs: rows added between another job's read and write would be lost. If
     * the lock is not acquired in time, only those rows are lost. */
    snprintf(name, sizeof name, "%s.lock", path);
    for (int i = 0; file_lock_acquire(&lock, name) == -EBUSY && i < LOCK_TRIES; i++)
        clock_sleep_ns(LOCK_PAUSE_NS);
    json_t *others = dnn_choices_read(path);
    if (others)
        json_object_update_missing(choices, others);
    json_decref(others);
    json_t *whole = json_pack("{s:i, s:O}", "version", (int)FILE_VERSION, "plans", choices);
    int code = whole ? file_draft_open(&draft, path, NULL) : -ENOMEM;
    if (code == 0) {
        code = json_dumpfd(whole, draft.fd, JSON_INDENT(1) | JSON_SORT_KEYS) ? -EIO : 0;
        if (code == 0)
            code = file_draft_commit(&draft);
        file_draft_abandon(&draft);
    }
    json_decref(whole);
    file_lock_release(&lock);
    return code ? fail(EIO, "%s: cannot write: choose another file with cuda:plans=FILE, or none",
                       path)
                : 0;
}
