/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: small runs of the program, in each of which one call fails (faults.so). Each must exit
 * with 0 and the complete, correct result, or with 1 and a reason; never by a signal, never
 * hanging, never with a torn output or a foreign file changed.
 *
 * sweep [WORK [CLASS [NUMBER]]]: by default a sample of all; with IOBENCH_LONG=1 every call.
 */
#include "tests/hostile/hostile.h"

#include "base/crc32c.h"

#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLE_EVERY = 3, TEXT_BYTES = 1 << 20 };

struct work {
    const char *name, *words; /* @ is the base set of the format, % the output folder */
    const char *format;
    bool makes; /* its files must be identical, byte for byte */
};

#define RUN "run -n 1 --no-calibrate -m 8m -q 4 -t 1 -B 4 --digest --json %/r.json -d @ "

static const struct work works[] = {
    {"run-uring", RUN "--decode jpeg", "shards", false},
    {"run-direct", RUN "--direct --decode checksum", "recordio", false},
    {"run-pread", RUN "-r pread --decode checksum --csv %/r.csv", "tar", false},
    {"run-mmap", RUN "-r mmap --decode checksum", "files", false},
    {"run-inflate", RUN "-r inflate --decode checksum -s none", "gzip", false},
    {"run-lmdb", RUN "-r lmdb --decode checksum", "lmdb", false},
    {"run-loaders", RUN "--io-threads 2 --decode checksum --drop-caches --series %/s.csv", "shards",
     false},
    {"pack-shards", "pack @ %/set -f shards --shards 2 -t 2", "files", true},
    {"pack-recordio", "pack @ %/set -f recordio --shards 2 -t 1", "shards", true},
    {"pack-lmdb", "pack @ %/set -f lmdb", "shards", true},
    {"pack-tar", "pack @ %/set -f tar --shards 2", "recordio", true},
    {"pack-files", "pack @ %/set -f files", "tar", true},
    {"train",
     "train -N lenet --backend reference -B 4 -t 1 -m 8m --eval-data @ --checkpoint %/c --json "
     "%/r.json -d @",
     "shards", false},
    {"infer", "infer -N lenet --backend reference -B 4 -t 1 -m 8m --json %/r.json -d @", "tar",
     false},
    {"verify", "verify --decode --json=%/r.json @", "lmdb", false},
    {"inspect", "inspect --json=%/r.json @", "recordio", false},
};

static const struct fault {
    const char *class;
    int codes[5]; /* used in rotation; a 0 before the last code: do half of the work */
    int count;
} faults[] = {
    {"alloc", {ENOMEM}, 1},
    {"open", {EMFILE, EIO, EACCES}, 3},
    {"read", {EIO, 0, EINTR}, 3},
    {"write", {ENOSPC, 0, EIO, EDQUOT, EINTR}, 5},
    {"sync", {EIO, ENOSPC}, 2},
    {"rename", {EIO, ENOSPC, EINVAL}, 3},
    {"unlink", {EIO, EACCES}, 2},
    {"mkdir", {ENOSPC, EIO}, 2},
    {"stat", {EIO, EACCES}, 2},
    {"thread", {EAGAIN}, 1},
    {"uring", {ENOMEM, EAGAIN, EINTR, EBUSY}, 4},
    {"random", {ENOSYS, EINTR}, 2},
    {"spawn", {EAGAIN, ENOMEM}, 2},
};

#define WORK_COUNT (sizeof works / sizeof *works)
#define FAULT_COUNT (sizeof faults / sizeof *faults)

static char folder[PATH_MAX], program[PATH_MAX], library[PATH_MAX];
static unsigned point_count, fault_count, tolerated_count, failed_count;
static bool is_long;

/* ---- results ---- */

/* Names and contents of the output folder, or of the set in it. */
static struct listing {
    char *text;
    size_t length;
} * listing;

static int list_file(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    static uint8_t bytes[TEXT_BYTES];
    char line[PATH_MAX];

    (void)kind;
    if (!S_ISREG(status->st_mode) || strstr(path, ".iobench-index") || where->level == 0)
        return 0;
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    int length = snprintf(line, sizeof line, "%s %08x\n", path, crc32c(0, bytes, got));
    listing->text = realloc(listing->text, listing->length + (size_t)length + 1);
    if (!listing->text)
        give_up("out of memory");
    memcpy(listing->text + listing->length, line, (size_t)length + 1);
    listing->length += (size_t)length;
    return 0;
}

static struct listing list_output(void)
{
    struct listing made = {.text = calloc(1, 1)};

    listing = &made;
    if (nftw("out", list_file, 16, FTW_PHYS))
        give_up("out: cannot list");
    return made;
}

/* Return the first file that differs from a complete pack's: drafts do not count, and are
 * removed. */
static const char *torn_file(const struct listing *now, const struct listing *whole)
{
    static char fault[PATH_MAX + 64];
    char *copy = strdup(now->text), *rest = copy, *line;
    const char *found = NULL;

    while (!found && (line = strsep(&rest, "\n")))
        if (*line && !strstr(line, ".iobench-") && !strstr(line, ".unfinished") &&
            !strstr(line, "lock") && !strstr(whole->text, line)) {
            snprintf(fault, sizeof fault, "leaves %.4000s", line);
            found = fault;
        }
    free(copy);
    return found;
}

/* List all keys of a JSON value, except those that depend on the machine. */
static void list_keys(json_t *value, const char *path, json_t *keys)
{
    char below[1024];
    const char *key;
    json_t *inner;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach(value, key, inner)
        {
            snprintf(below, sizeof below, "%s.%s", path, key);
            json_object_set_new(keys, below, json_true());
            list_keys(inner, below, keys);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, inner) list_keys(inner, path, keys);
    }
}

static json_t *result_keys(void)
{
    json_t *value = json_load_file("out/r.json", 0, NULL), *keys = json_object();

    if (!value) {
        json_decref(keys);
        return NULL;
    }
    list_keys(value, "", keys);
    json_decref(value);
    return keys;
}

/* Figures that depend on time or on the machine: unknown in one run, known in the next. */
static bool is_optional(const char *key)
{
    static const char *const parts[] = {"series", "host",  "storage",   "device",
                                        "remark", "cache", "read_head", "read_rest"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(key, parts[i]))
            return true;
    return false;
}

/* Return the first key of whole that is missing, or NULL. */
static const char *missing_key(json_t *keys, json_t *whole)
{
    static char text[1100];
    const char *key;
    json_t *value;

    json_object_foreach(whole, key, value)
    {
        if (!json_object_get(keys, key) && !is_optional(key)) {
            snprintf(text, sizeof text, "exit status 0 without the key %s", key);
            return text;
        }
    }
    return NULL;
}

static char *digest(void)
{
    json_t *value = json_load_file("out/r.json", 0, NULL);
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL, *found = NULL;
    char *at = text ? strstr(text, "\"digest\":") : NULL;

    if (at)
        found = strndup(at, strcspn(at, ",}"));
    free(text);
    json_decref(value);
    return found ? found : strdup("");
}

struct outcome {
    struct listing files;
    json_t *keys;
    char *digest;
};

static struct outcome take_outcome(void)
{
    return (struct outcome){.files = list_output(), .keys = result_keys(), .digest = digest()};
}

static void free_outcome(struct outcome *outcome)
{
    free(outcome->files.text);
    json_decref(outcome->keys);
    free(outcome->digest);
}

static const char *made_fault(const struct outcome *now, const struct outcome *whole,
                              const char *class, bool succeeded)
{
    const bool may_stay = strcmp(class, "unlink") == 0;

    if (succeeded && torn_file(&whole->files, &now->files))
        return "exit status 0 with other files";
    return may_stay ? NULL : torn_file(&now->files, &whole->files);
}

static const char *outcome_fault(const struct work *work, const struct outcome *now,
                                 const struct outcome *whole, const char *class, bool succeeded)
{
    if (work->makes)
        return made_fault(now, whole, class, succeeded);
    if (!succeeded)
        return !now->keys && !access("out/r.json", F_OK) ? "leaves a torn result" : NULL;
    if (strcmp(now->digest, whole->digest) != 0)
        return "exit status 0 with another digest";
    return now->keys ? missing_key(now->keys, whole->keys) : "exit status 0 without a result";
}

/* ---- one point ---- */

static void enter(void)
{
    if (chdir(folder))
        give_up("%s", folder);
}

static void run_point(const struct work *work, const char *class, unsigned long at, int code,
                      struct command_result *result)
{
    char *words[COMMAND_WORDS] = {strdup(program)}, base[32], number[32], error[32];

    enter();
    if (system("rm -rf out cache && mkdir out && find . -name .iobench-index -delete"))
        give_up("cannot empty");
    snprintf(number, sizeof number, "%lu", at);
    snprintf(error, sizeof error, "%d", code);
    setenv("FAULT_CLASS", class, 1);
    setenv("FAULT_AT", number, 1);
    setenv("FAULT_ERRNO", error, 1);
    setenv("LD_PRELOAD", library, 1);
    snprintf(base, sizeof base, "base-%s", work->format);
    command_words(words, 1, work->words, base, "out");
    command_run(words, 0, result);
    unsetenv("LD_PRELOAD");
    command_words_free(words);
}

static void one_point(const struct work *work, const struct outcome *whole, const char *class,
                      unsigned long at, int code)
{
    struct command_result result;
    struct tree before, after;

    tree_take(&before, "sentinel", NULL, NULL);
    run_point(work, class, at, code, &result);
    tree_take(&after, "sentinel", NULL, NULL);
    const bool succeeded = WIFEXITED(result.status) && WEXITSTATUS(result.status) == 0;
    struct outcome now = take_outcome();
    const char *fault = command_fault(&result);
    if (!fault)
        fault = outcome_fault(work, &now, whole, class, succeeded);
    if (!fault)
        fault = tree_difference(&before, &after);
    point_count++;
    tolerated_count += succeeded;
    failed_count += !succeeded;
    if (fault) {
        fault_count++;
        printf("FAULT: sweep %s %s %lu (%s): %s\n%.500s", work->name, class, at,
               code ? strerror(code) : "half", fault, result.error);
    }
    free_outcome(&now);
    tree_free(&before);
    tree_free(&after);
    command_free(&result);
}

/* ---- all points ---- */

static unsigned long calls_of(const char *class)
{
    char line[128], name[64];
    unsigned long count, found = 0;
    FILE *file = fopen("calls", "re");

    if (!file)
        give_up("faults.so wrote no report");
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %lu", name, &count) == 2 && strcmp(name, class) == 0)
            found = count;
    fclose(file);
    return found;
}

static void sweep_class(const struct work *work, size_t number, const struct outcome *whole,
                        const struct fault *fault, size_t fault_number, unsigned long calls)
{
    if (is_long) {
        for (unsigned long at = 1; at <= calls; at++)
            one_point(work, whole, fault->class, at, fault->codes[at % (unsigned)fault->count]);
        return;
    }
    /* A sample: every third pair of work and class, with a different call for each. */
    if (calls == 0 || (number + fault_number) % SAMPLE_EVERY != 0)
        return;
    const unsigned long at = (number * 7919 + fault_number * 104729) % calls + 1;
    one_point(work, whole, fault->class, at, fault->codes[at % (unsigned)fault->count]);
}

static void sweep_work(size_t number, const char *class, unsigned long only)
{
    const struct work *work = &works[number];
    struct command_result result;
    unsigned long calls[FAULT_COUNT];

    run_point(work, "", 0, 0, &result);
    if (result.status || result.late)
        give_up("%s fails undisturbed: %s", work->name, result.error);
    command_free(&result);
    struct outcome whole = take_outcome();
    for (size_t i = 0; i < FAULT_COUNT; i++)
        calls[i] = calls_of(faults[i].class);
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        const unsigned before = point_count;
        if (class && strcmp(class, faults[i].class) != 0)
            continue;
        if (only)
            one_point(work, &whole, class, only, faults[i].codes[only % (unsigned)faults[i].count]);
        else
            sweep_class(work, number, &whole, &faults[i], i, calls[i]);
        if (is_long)
            printf("%s %s: %lu calls, %u points\n", work->name, faults[i].class, calls[i],
                   point_count - before);
    }
    free_outcome(&whole);
}

static void remove_folder(void)
{
    char command[PATH_MAX + 32];

    snprintf(command, sizeof command, "rm -rf '%.4000s'", folder);
    if (chdir("/") == 0 && !getenv("KEEP") && system(command))
        printf("%s is left\n", folder);
}

static void make_bases(void)
{
    static const char *const formats[] = {"shards", "recordio", "tar", "files", "lmdb"};
    char words[256];

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        snprintf(words, sizeof words,
                 "pack synthetic:count=8,mean=4k,classes=4 base-%s -f %s --shards 2", formats[i],
                 formats[i]);
        if (i > 1 && strcmp(formats[i], "recordio"))
            snprintf(words, sizeof words, "pack base-shards base-%s -f %s", formats[i], formats[i]);
        run_program(words);
    }
    if (system("mkdir base-gzip && for i in 0 1; do gzip <base-shards/train-0000$i-of-00002 "
               ">base-gzip/train-0000$i-of-00002 || exit 1; done"))
        give_up("gzip");
}

static void prepare(void)
{
    const char *temporary = getenv("TMPDIR");
    char path[PATH_MAX + 32];

    if (!realpath("iobench", program) || !realpath("tests/fault/faults.so", library))
        give_up("cannot find the program");
    snprintf(folder, sizeof folder, "%.3000s/iobench-sweep-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        give_up("%s", folder);
    atexit(remove_folder);
    setenv("HOSTILE_PROGRAM", program, 1);
    snprintf(path, sizeof path, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/calls", folder);
    setenv("FAULT_REPORT", path, 1);
    enter();
    put_folder("sentinel");
    put_text("sentinel/thesis", "the only copy\n");
    make_bases();
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("IOBENCH_LONG");

    is_long = (wanted && strcmp(wanted, "0") != 0) || argc > 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare();
    for (size_t i = 0; i < WORK_COUNT; i++)
        if (argc < 2 || strcmp(argv[1], works[i].name) == 0)
            sweep_work(i, argc > 2 ? argv[2] : NULL, argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
    printf("%u points: %u tolerated, %u failed with a reason, %u faults\n", point_count,
           tolerated_count,
           failed_count - (fault_count < failed_count ? fault_count : failed_count), fault_count);
    return fault_count > 0;
}
