/* SPDX-License-Identifier: Apache-2.0
 *
 * hostile [GROUP [NAME]]: run the commands on the sets of a group, or on one set; without GROUP
 * list them. The program under test is ./iobench, or $IOBENCH. IOBENCH_LONG=1 also runs slow cases.
 * HOSTILE_EVERY=N runs every Nth command instead of every twelfth. KEEP=1 keeps the folder,
 * HOSTILE_LIMIT_S=N ends a command after N seconds.
 */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* By default the first sets of a group run with every command; the others with verify, and with
 * every twelfth command, another one for each set. */
enum { WHOLE_SETS = 2, SAMPLE_EVERY = 12, OPEN_FOLDERS = 32 };

/* How a command relates to the verdict of a set. */
enum { READS = 1, CHECKS = 2, PLAIN = 4, ALWAYS = 8 };

struct hostile_command {
    const char *name;
    enum hostile_kind kind;
    unsigned flags; /* READS: fails on REFUSED. CHECKS: also on DAMAGED. PLAIN: passes on FINE */
    const char *words;
};

#define RUN "run -n 1 --no-calibrate -m 8m -q 4 -t 1 -B 4 -e 1 -d @ "
#define LEARN "-N lenet --backend reference -B 2 -t 1 -m 8m --limit-samples 2 -d @ "

static const struct hostile_command commands[] = {
    {"run uring", KIND_DATA, READS | CHECKS | PLAIN, RUN "--decode checksum --crc"},
    {"run pread", KIND_DATA, READS | CHECKS | PLAIN, RUN "-r pread --decode checksum --crc"},
    {"run mmap", KIND_DATA, READS | CHECKS | PLAIN, RUN "-r mmap --decode checksum --crc"},
    {"run lmdb", KIND_DATA, READS, RUN "-r lmdb --decode checksum"},
    {"run inflate", KIND_DATA, READS, RUN "-r inflate --decode checksum -s none"},
    {"run null", KIND_DATA, READS, RUN "-r null --decode none"},
    {"run direct", KIND_DATA, READS, RUN "--direct --decode none -s buffer:3"},
    {"run jpeg", KIND_DATA, READS, RUN "--decode jpeg --digest --json %/run.json"},
    {"run skip", KIND_DATA, 0, RUN "--decode jpeg --on-error skip"},
    {"run drop", KIND_DATA, READS, RUN "--decode none -r pread --io-threads 2 -e 2"},
    {"train", KIND_DATA, READS, "train " LEARN "--checkpoint %/learnt"},
    {"infer", KIND_DATA, READS, "infer " LEARN},
    {"verify", KIND_DATA, READS | CHECKS | PLAIN | ALWAYS, "verify @"},
    {"verify decode", KIND_DATA, READS | CHECKS, "verify --decode --json @"},
    {"inspect", KIND_DATA, READS | PLAIN, "inspect @"},
    {"inspect json", KIND_DATA, READS | PLAIN, "inspect --json @"},
    {"pack shards", KIND_DATA, READS, "pack @ %/set -f shards -t 2"},
    {"pack recordio", KIND_DATA, READS, "pack @ %/set -f recordio --shards 2 --shuffle"},
    {"pack lmdb", KIND_DATA, READS, "pack @ %/set -f lmdb"},
    {"pack tar", KIND_DATA, 0, "pack @ %/set -f tar --on-error skip"},
    {"pack files", KIND_DATA, 0, "pack @ %/set -f files --on-error skip"},
    {"pack archive", KIND_DATA, 0, "pack --from archive @ %/set"},
    {"pack idx", KIND_DATA, 0, "pack --from idx @ %/set"},
    {"shuffle", KIND_DATA, READS, "shuffle -d @ epoch -B 4"},
    {"shuffle read", KIND_DATA, READS, "shuffle -d @ none --measure -n 1 -m 8m -B 4"},
    {"monitor", KIND_DATA, 0, "monitor -c 1 -i 20ms --sample-interval 10ms @"},
    {"monitor command", KIND_DATA, 0, "monitor -i 20ms --sample-interval 10ms @ -- true"},
    {"doctor", KIND_DATA, 0, "doctor @"},
    {"cachectl status", KIND_DATA, 0, "cachectl status --files @"},
    {"cachectl evict", KIND_DATA, 0, "cachectl evict @"},
    {"job", KIND_JOB, READS, "@"},
    {"run as job", KIND_JOB, READS, "run @"},
    {"compare", KIND_RESULT, READS, "compare @ @"},
    {"compare json", KIND_RESULT, READS, "compare --json @ @"},
    {"plot", KIND_RESULT, READS, "plot -o %/plot.svg @"},
    {"report", KIND_RESULT, READS, "report -o %/report.html @"},
    {"size", KIND_RESULT, 0, "size --gpus 8 --gpu h200 @"},
    {"infer checkpoint", KIND_CHECKPOINT, READS, "infer " LEARN "--checkpoint @"},
    {"train resume", KIND_CHECKPOINT, 0, "train " LEARN "--checkpoint @ --resume"},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const struct {
    const char *name;
    const struct hostile_set *sets;
} groups[] = {
    {"records", hostile_records}, {"lmdb", hostile_lmdb},       {"tar", hostile_tar},
    {"trees", hostile_trees},     {"images", hostile_images},   {"sidecars", hostile_sidecars},
    {"outputs", hostile_outputs}, {"targets", hostile_targets},
};

/* The test's own folder. Below it, sentinel/ and the sets must not change; out/, cache/ and tmp/
 * may. */
static char folder[PATH_MAX], program[PATH_MAX];
static bool is_open; /* other users can start the program */
static unsigned run_count, fault_count, skipped_count, set_count;
static unsigned sample_every = SAMPLE_EVERY;
static bool is_long;

static void must(int code, const char *what)
{
    if (code)
        give_up("%s", what);
}

static void enter(const char *below)
{
    must(chdir(folder), folder);
    if (below)
        must(chdir(below), below);
}

/* ---- one command ---- */

static const char *operand_of(const struct hostile_set *set)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%.3000s/set%s%s", folder, set->operand ? "/" : "",
             set->operand ? set->operand : "");
    return path;
}

/* Release with command_words_free(). */
static void make_words(const struct hostile_set *set, const char *template,
                       char *words[COMMAND_WORDS])
{
    const size_t other = strncmp(template, "cachectl ", 9) == 0 ? 9 : 0;

    if (asprintf(&words[0], "%s%s", program, other ? "/cachectl/cachectl" : "/iobench") < 0)
        give_up("out of memory");
    command_words(words, 1, template + other, operand_of(set), "../out");
}

static const char *verdict_fault(const struct hostile_set *set, unsigned flags, int status)
{
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

    if (!failed && ((set->verdict == REFUSED && (flags & READS)) ||
                    (set->verdict == DAMAGED && (flags & CHECKS))))
        return "succeeds, but must fail";
    if (failed && set->verdict == FINE && (flags & PLAIN))
        return "fails, but must succeed";
    return NULL;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

/* Recreate the folder, empty. */
static void empty(const char *below)
{
    enter(NULL);
    umount2("set/small", MNT_DETACH); /* where the previous set mounted a file system */
    must(access(below, F_OK) ? 0 : nftw(below, remove_one, OPEN_FOLDERS, FTW_PHYS | FTW_DEPTH),
         below);
    must(mkdir(below, 0777), below);
    must(chmod(below, 0777), below);
}

static void report(const struct hostile_set *set, const char *command, char *const words[],
                   const char *fault, const struct command_result *result)
{
    fault_count++;
    printf("FAULT: %s (%s): %s: %s\n    set  ", set->name, set->summary, command, fault);
    for (int i = 0; words[i]; i++)
        printf(" %s", words[i]);
    printf("\n");
    for (const char *at = result->error; *at && at - result->error < 600; at++)
        putchar(*at == '\n' || (*at >= ' ' && *at < 0x7f) ? *at : '?');
}

/* Return the path of the set's name below the test's folder; NULL without one. free() it. */
static char *below_set(const char *name)
{
    char *path = NULL;

    if (name && asprintf(&path, "./set/%s", name) < 0)
        give_up("out of memory");
    return path;
}

static const char *run_and_judge(const struct hostile_set *set, char *const words[], unsigned flags,
                                 struct command_result *result)
{
    char *allowed = set->change ? strdup("./set") : below_set(set->allowed),
         *kept = below_set(set->kept);
    struct tree before, after;
    const char *fault;

    enter(NULL);
    tree_take(&before, ".", allowed, kept);
    enter("set");
    command_run(words, set->flags, result);
    enter(NULL);
    tree_take(&after, ".", allowed, kept);
    if (!(fault = command_fault(result)) && !(fault = verdict_fault(set, flags, result->status)))
        fault = tree_difference(&before, &after);
    tree_free(&before);
    tree_free(&after);
    free(allowed);
    free(kept);
    return fault;
}

static void one_command(const struct hostile_set *set, const char *name, const char *template,
                        unsigned flags)
{
    char *words[COMMAND_WORDS];
    struct command_result result;
    pid_t mover = 0;

    empty("out");
    enter("set");
    if (set->change)
        mover = keep_moving(set->change);
    make_words(set, template, words);
    const char *fault = run_and_judge(set, words, flags, &result);
    run_count++;
    if (mover) {
        kill(mover, SIGKILL);
        waitpid(mover, NULL, 0);
    }
    if (fault)
        report(set, name, words, fault, &result);
    command_free(&result);
    command_words_free(words);
}

/* ---- a set ---- */

static void make_set(const struct hostile_set *set)
{
    empty("set");
    enter("set");
    umask(022);
    hostile_make(set);
}

static bool applies(const struct hostile_set *set, unsigned number, unsigned index)
{
    const struct hostile_command *command = &commands[index];

    if (command->kind != set->kind)
        return false;
    return is_long || number < WHOLE_SETS || command->kind != KIND_DATA ||
           (command->flags & ALWAYS) || (number + index) % sample_every == 0;
}

static void one_set(const struct hostile_set *set, unsigned number)
{
    if (((set->flags & LONG_RUN) && !is_long) ||
        ((set->flags & (NEEDS_ROOT | AS_NOBODY)) && geteuid() != 0) ||
        ((set->flags & AS_NOBODY) && !is_open)) {
        skipped_count++;
        return;
    }
    set_count++;
    make_set(set);
    if (set->kind == KIND_OWN)
        one_command(set, "its command", set->command, READS | CHECKS | PLAIN);
    for (unsigned i = 0; i < COMMAND_COUNT; i++) {
        if (!applies(set, number, i))
            continue;
        one_command(set, commands[i].name, commands[i].words, commands[i].flags);
        if (set->flags & FRESH)
            make_set(set);
    }
}

/* ---- all sets ---- */

static void remove_folder(void)
{
    umount2("set/small", MNT_DETACH);
    if (!getenv("KEEP") && nftw(folder, remove_one, OPEN_FOLDERS, FTW_PHYS | FTW_DEPTH))
        printf("%s is left\n", folder);
}

static void prepare(void)
{
    const char *temporary = getenv("TMPDIR"), *given = getenv("IOBENCH_BUILD");
    const char *source = getenv("srcdir"), *sanitizer = getenv("ASAN_OPTIONS");
    char path[PATH_MAX + 128];

    if (!realpath(given ? given : ".", program) || !realpath(source ? source : ".", path))
        give_up("cannot find the build or the source folder");
    setenv("HOSTILE_SOURCE", path, 1);
    snprintf(path, sizeof path, "%.4000s/iobench", program);
    is_open = nobody_can_run(path);
    setenv("HOSTILE_PROGRAM", path, 1);
    snprintf(folder, sizeof folder, "%.3000s/iobench-hostile-XXXXXX",
             temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        give_up("%s", folder);
    must(chmod(folder, 0755), folder);
    atexit(remove_folder);
    snprintf(path, sizeof path, "%s/cache", folder);
    setenv("XDG_CACHE_HOME", path, 1);
    setenv("HOME", folder, 1);
    snprintf(path, sizeof path, "%s%sexitcode=66:allocator_may_return_null=1",
             sanitizer ? sanitizer : "", sanitizer ? ":" : "");
    setenv("ASAN_OPTIONS", path, 1);
    enter(NULL);
    put_folder("sentinel");
    put_text("sentinel/thesis", "the only copy\n");
    put_text("sentinel/secret", "for root alone\n");
    must(chmod("sentinel/secret", 0600), "sentinel");
    put_folder("cache");
    must(chmod("cache", 0777), "cache");
    put_folder("sentinel/letters");
    put_text("sentinel/letters/first", "a letter\n");
}

static int run_group(const struct hostile_set *sets, const char *name)
{
    bool found = false;

    prepare();
    for (unsigned i = 0; sets[i].name; i++)
        if (!name || strcmp(sets[i].name, name) == 0) {
            one_set(&sets[i], i);
            found = true;
        }
    printf("%u sets, %u runs, %u faults, %u sets skipped\n", set_count, run_count, fault_count,
           skipped_count);
    return !found || fault_count > 0;
}

static void list_sets(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (const struct hostile_set *set = groups[i].sets; set->name; set++, count++)
            printf("%-9s %-32s %s\n", groups[i].name, set->name, set->summary);
    printf("%u sets, %zu commands\n", count, COMMAND_COUNT);
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("IOBENCH_LONG"), *every = getenv("HOSTILE_EVERY");

    is_long = (wanted && strcmp(wanted, "0") != 0) || argc > 2;
    if (every && atoi(every) > 0)
        sample_every = (unsigned)atoi(every);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (argc > 1 && strcmp(argv[1], groups[i].name) == 0)
            return run_group(groups[i].sets, argc > 2 ? argv[2] : NULL);
    list_sets();
    return argc > 1 ? 2 : 0;
}
