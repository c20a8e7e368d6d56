/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/session.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/control_group.h"
#include "base/random.h"
#include "base/stop.h"
#include "dataset/sidecar.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "pipeline/evidence/validity.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the memory limit ----
 *
 * In version 2 a group with processes, except for the root, has no children with a memory limit
 * (cgroup-v2.rst, "No Internal Process Constraint"). So the group is created below our own if
 * possible, else beside it. */

#define GROUP_NAME "iobench.%d" /* of the PID */

/* Returns 0 or -errno without a reason. */
static int write_group(const char *group, const char *name, const char *text)
{
    struct folder folder;
    int code = folder_open(&folder, group);

    if (code)
        return code;
    int fd = folder_open_file(&folder, name, O_WRONLY, NULL);
    if (fd == -ENOENT)
        fd = folder_create_file(&folder, name); /* only in a test's tree; the kernel refuses */
    folder_close(&folder);
    if (fd < 0)
        return fd;
    code = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return code;
}

/* Create or remove a group. */
static int change_group(const char *path, bool makes)
{
    struct folder parent;
    const char *name;
    int code = folder_open_parent(&parent, path, &name);

    if (code == 0)
        code = makes ? folder_make(&parent, name) : folder_remove(&parent, name, NULL);
    folder_close(&parent);
    return code;
}

static int move_to(const char *group)
{
    char pid[32];

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    return write_group(group, "cgroup.procs", pid);
}

/* Remove empty groups left by processes that were killed. */
static void remove_orphans(const char *parent)
{
    struct folder folder;
    struct folder_names names = {0};
    int pid;

    if (folder_open(&folder, parent) == 0)
        folder_names_read(&names, &folder);
    for (size_t i = 0; i < names.count; i++)
        if (sscanf(names.list[i], GROUP_NAME, &pid) == 1 && kill(pid, 0) && errno == ESRCH)
            folder_remove(&folder, names.list[i], NULL);
    folder_names_release(&names);
    folder_close(&folder);
}

/* Create a child group of parent with the limit, and move this process into it. Returns 0, or
 * -errno without a reason, leaving nothing behind. */
static int make_below(struct memory_limit *limit, const char *parent, bool version1, uint64_t bytes)
{
    char number[32], words[512] = "";
    bool is_on = version1;
    int code = 0;

    if (!version1)
        file_peek(words, sizeof words, "%s/cgroup.subtree_control", parent);
    for (struct text text = text_of_string(words), each; !is_on && text_word(&text, &each);)
        is_on = text_is(each, "memory");
    if (!is_on)
        code = write_group(parent, "cgroup.subtree_control", "+memory");
    if (code)
        return code;
    remove_orphans(parent);
    snprintf(limit->group, sizeof limit->group, "%.2047s/" GROUP_NAME, parent, (int)getpid());
    code = change_group(limit->group, true);
    if (code)
        return code;
    snprintf(number, sizeof number, "%" PRIu64, bytes);
    code = write_group(limit->group, version1 ? "memory.limit_in_bytes" : "memory.max", number);
    if (code == 0 && !version1)
        write_group(limit->group, "memory.swap.max", "0"); /* absent without swap accounting */
    if (code == 0)
        code = move_to(limit->group);
    if (code)
        change_group(limit->group, false);
    return code;
}

int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes)
{
    char parent[CONTROL_GROUP_BYTES], size[32];
    struct control_group own;

    *limit = (struct memory_limit){0};
    if (!control_group_find(&own, "memory", roots->proc, roots->sys))
        return fail(ENOENT, "--memory-limit: no control group counts memory");
    const bool version1 = own.version1;
    snprintf(limit->from, sizeof limit->from, "%s", own.folder);
    int code = make_below(limit, limit->from, version1, bytes);
    snprintf(parent, sizeof parent, "%s", limit->from);
    *strrchr(parent, '/') = '\0';
    if (code == 0 || (!version1 && make_below(limit, parent, version1, bytes) == 0))
        return 0;
    fail(-code,
         "--memory-limit %s: cannot create a control group in %s: %s; run as root, or in a group "
         "of your own: systemd-run --user --scope iobench ...",
         bytes_text(bytes, size, sizeof size), limit->from, fail_errno_text(code));
    *limit = (struct memory_limit){0};
    return code;
}

void memory_limit_leave(struct memory_limit *limit)
{
    if (!limit->from[0])
        return;
    move_to(limit->from);
    /* A joined thread may still be leaving the group. */
    for (int tries = 0; change_group(limit->group, false) == -EBUSY && tries < 1000; tries++)
        clock_sleep_ns(1000000);
    *limit = (struct memory_limit){0};
}

/* ---- the session ---- */

int session_tick(void *context)
{
    const struct session *session = context;

    return ranks_called_off(session->ranks) ? fail(ECANCELED, "another rank failed") : stop_check();
}

int session_meet(struct session *session, int code)
{
    if (code)
        ranks_call_off(session->ranks);
    return ranks_meet(session->ranks, code, NULL);
}

int session_enter_limit(struct session *session)
{
    const uint64_t bytes = session->job->cold.memory_limit_bytes;

    if (!bytes || session->job->dry_run || session->limit.from[0])
        return 0;
    return memory_limit_enter(&session->limit, &telemetry_roots_usual, bytes);
}

int session_open(struct session *session, int code)
{
    struct result *result = session->result;

    result->ranks = session->ranks->place.ranks;
    result->nodes = session->ranks->place.nodes;
    if (code == 0)
        code = session_enter_limit(session);
    session->beats = code == 0;
    if (code == 0)
        code = ranks_heart_start(session->ranks);
    code = ranks_meet(session->ranks, code, NULL);
    if (code || session->job->dry_run)
        return code;
    session->recorder =
        recorder_start(session->job->read.data, &session->job->output, session->ranks);
    if (!session->recorder)
        snprintf(result->timeline_reason, sizeof result->timeline_reason, "%.159s", fail_reason());
    return 0;
}

int session_watch(struct session *session, struct catalog *catalog,
                  const struct job_plugins *plugins)
{
    session->catalog = catalog;
    session->plugins = plugins;
    session->witness = witness_open(&session->job->cold, catalog, plugins->reader.plugin);
    int code = ranks_meet(session->ranks, session->witness ? 0 : -ENOMEM, NULL);

    if (code == 0)
        witness_environment(session->witness, &session->result->environment);
    return code;
}

void session_close(struct session *session, int code)
{
    session->result->timeline = recorder_finish(session->recorder, code);
    if (session->beats)
        ranks_heart_stop(session->ranks);
    session->ranks->rank_timeout_ns = 0; /* the next phase may take any time */
    witness_close(session->witness);
    hinting_close(&session->hinting);
    memory_limit_leave(&session->limit);
}

void session_judge(struct session *session, struct result_run *run)
{
    if (session->ranks->place.rank == 0)
        witness_ask_server(session->witness, &run->cold);
    validity_check(session->job, session->plugins, run, session->result);
    validity_account(session->result, run);
}

int session_before_epoch(struct session *session, struct result_epoch *epoch, int code)
{
    if (code == 0) /* an epoch may be too short for a tick */
        code = stop_check();
    code = ranks_meet(session->ranks, code, &epoch->start_barrier_ns);
    if (code == 0)
        witness_before(session->witness);
    return code;
}

int session_after_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct session *session = context;

    assert(session->witness);
    if (code)
        ranks_call_off(session->ranks);
    code = ranks_meet(session->ranks, code, &epoch->stop_barrier_ns);
    epoch->met_ns = clock_now_ns() - epoch->start_ns;
    witness_after(session->witness, &epoch->device);
    if (session->result->memory_during_bytes == 0)
        session->result->memory_during_bytes = memory_resident_bytes();
    epoch->guard.shortages = shortage_code() != 0;
    return code;
}

/* ---- the data set ---- */

struct search {
    const struct job *job;
    const struct format_scan *scan;
    struct job_plugins *plugins;
    struct catalog **catalog;
    struct result *result;
};

/* With --on-error skip: count the damage and report the first place. */
static int note_fault(void *context, const struct catalog_fault *fault)
{
    struct result *result = context;

    if (result->index_faults++ == 0)
        result_notice(result, "the index omits damaged samples, the first: %s: offset %llu: %s",
                      fault->path, (unsigned long long)fault->offset, fault->what);
    return 0;
}

/* Index with many threads; only if there is damage, index again with one thread that can skip it.
 */
static int search(void *context)
{
    const struct search *search = context;
    const struct job *job = search->job;
    const struct plugin_choice *format = &search->plugins->format;
    int code = format_choose(job->read.format, job->read.data, &search->plugins->format);

    if (code)
        return code;
    code = format_catalog(format, job->read.data, true, search->scan, search->catalog);
    /* Retry for damage in a file, not for failures that would recur. */
    if (code == 0 || code == -ENOMEM || code == -EINTR || code == -ECANCELED ||
        code == -ETIMEDOUT || code == -EINPROGRESS)
        return code;
    if (job->read.on_error != JOB_ERROR_SKIP)
        return code;
    struct format_scan skipping = *search->scan;
    skipping.fault = note_fault;
    skipping.fault_context = search->result;
    return format_catalog(format, job->read.data, false, &skipping, search->catalog);
}

int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result)
{
    struct search mine = {
        .job = job, .scan = scan, .plugins = plugins, .catalog = catalog, .result = result};
    uint32_t other = 0;

    store_set_timeout(job->read.io_timeout_ns);
    result->decodes = decoder_of(plugins->decoder.plugin)->gives_pixels;
    int code = options_check_alike(job_options, job, ranks);
    if (code == 0)
        code = ranks_in_turn(ranks, search, &mine);
    if (code)
        return code;
    /* All ranks need the same data set: else some samples are read twice, others never. Not the
     * same names, times and sizes of files, which copies on nodes may not share: an LMDB's map. */
    const struct catalog *found = *catalog;
    code = ranks_compare(
        ranks,
        random_hash(found->record_count, found->record_bytes_total,
                    crc32c(0, found->records, found->record_count * sizeof *found->records)),
        &other);
    if (code == 0 && other)
        code = fail(EINVAL,
                    "%s: the data set differs between nodes: rank %u on %s found other samples "
                    "than rank 0 on %s",
                    job->read.data, other, ranks->peers[other].host, ranks->peers[0].host);
    if (code)
        return code;
    format_say_remarks(found);
    result_note_unread(result, found);
    /* Hints make decoding faster, nothing else: without them, or with bad ones, the job runs. */
    if (decoder_uses_hints(&plugins->decoder)) {
        if (hints_file_load(found, &(*catalog)->hints))
            result_notice(result, "%s: not used; 'iobench verify --entry-points' renews it",
                          fail_reason());
        fail_clear();
    }
    /* The order of --shuffle auto depends on the data. An order that the user chose stays: the
     * reader refuses it if it goes back in a compressed shard. */
    plugin_release(&plugins->shuffle);
    code = shuffle_choose(job->order.shuffle, found->compressed, &plugins->shuffle);
    if (code)
        return code;
    snprintf(result->shuffle, sizeof result->shuffle, "%s", plugins->shuffle.text);
    /* Compressed shards are indexed by offsets in the inflated stream, which only one reader
     * serves.
     */
    const struct plugin *reader = plugins->reader.plugin;
    if (!found->compressed || reader->idle || reader_of(reader)->inflates)
        return 0;
    const struct plugin *inflating = reader_auto(store_of(found->root)->scheme, true);
    result_notice(result,
                  "the shards are compressed as a whole: they are read by the %s reader, not %s, "
                  "and %s shuffles",
                  inflating->name, reader->name, plugins->shuffle.plugin->name);
    plugin_release(&plugins->reader);
    return plugin_choose("reader", reader_registry, inflating->name, &plugins->reader);
}

/* ---- the hints that an epoch made ---- */

enum { MESSAGE_BYTES = 1 << 28 }; /* at most in one message */

/* Sum up what was made, and move it to rank 0: of one rank after the other, so that one message at
 * a time is in memory. */
static int collect_hints(struct ranks *ranks, const struct hinting *hinting,
                         struct result_hints *told)
{
    const uint32_t rank = ranks->place.rank;
    double sums[] = {(double)hinting->records, (double)hinting->images,
                     (double)counter_get(&hinting->ns)};
    int code = ranks_sum(ranks, sums, 3);

    for (uint32_t from = 1; code == 0 && from < ranks->place.ranks; from++) {
        uint8_t *raw = NULL;
        size_t packed = 0;
        if (rank == from && !(raw = hints_pack(hinting->made, 0, HINT_ABSENT, &packed)))
            code = -ENOMEM;
        double size = (double)packed;
        code = ranks_meet(ranks, code, NULL);
        if (code == 0)
            code = ranks_sum(ranks, &size, 1);
        const uint64_t bytes = (uint64_t)size;
        if (code == 0 && rank == 0)
            raw = memory_zeroed(bytes);
        code = code ? code : ranks_meet(ranks, rank == 0 && !raw ? -ENOMEM : 0, NULL);
        for (uint64_t done = 0; code == 0 && (rank == 0 || rank == from) && done < bytes;) {
            const uint64_t part = bytes - done < MESSAGE_BYTES ? bytes - done : MESSAGE_BYTES;
            code = ranks_move(ranks, rank ? 0 : from, raw + done, part, rank);
            done += part;
        }
        if (code == 0 && rank == 0)
            code = hints_unpack(hinting->made, raw, bytes);
        free(raw);
        code = ranks_meet(ranks, code, NULL);
    }
    told->records = (uint64_t)sums[0];
    told->images = (uint64_t)sums[1];
    told->decode_ns = (uint64_t)sums[2];
    return code;
}

/* Hints of data that were replaced meanwhile would take the place of good ones. */
static int save_hints(void *context)
{
    const struct session *session = context;
    struct result_hints *told = &session->result->hints;
    struct hints *present = NULL;
    char *path = NULL;
    int code = sidecar_check_shards(session->catalog, NULL);

    if (code == 0) {
        /* Another program may have written hints since the job began. Do not replace a file that
         * merely cannot be read now, by one with fewer hints; a useless one may go. */
        code = hints_file_load(session->catalog, &present);
        if (code == -EINVAL || code == -ESTALE || code == -EPERM || code == -EISDIR)
            code = 0;
    }
    if (present)
        hints_replace(present, session->hinting.made);
    const struct hints *all = present ? present : session->hinting.made;
    if (code == 0)
        code = hints_file_save(session->catalog, all, &path);
    if (code == 0) {
        told->kept_images = hints_count(all);
        snprintf(told->path, sizeof told->path, "%s", path);
    }
    free(path);
    hints_destroy(present);
    return code;
}

int keep_hints(struct session *session, int code)
{
    struct hinting *hinting = &session->hinting;
    struct catalog *catalog = session->catalog;
    const bool is_kept = code == 0 || (code == -EINTR && session->ranks->place.ranks == 1);
    const uint64_t start_ns = clock_now_ns();
    struct result_hints *told = &session->result->hints;
    char reason[FAIL_REASON_BYTES];

    if (!hinting->made)
        return code;
    snprintf(reason, sizeof reason, "%s", fail_reason());
    *told = (struct result_hints){.memory_bytes = told->memory_bytes,
                                  .records = hinting->records,
                                  .images = hinting->images,
                                  .decode_ns = counter_get(&hinting->ns)};
    hints_destroy(catalog->hints); /* free memory for the ones to be loaded */
    catalog->hints = NULL;
    int kept = is_kept ? collect_hints(session->ranks, hinting, told) : 0;
    if (is_kept && kept == 0 && session->ranks->place.rank == 0 && told->records > 0)
        kept = ranks_do(session->ranks, "entry points are being written", save_hints, session);
    if (!is_kept || kept)
        snprintf(told->reason, sizeof told->reason, "%.255s",
                 is_kept ? fail_reason() : "the epoch did not end");
    told->were_made = told->records > 0;
    hinting_close(hinting);
    if (code == 0) {
        code = ranks_meet(session->ranks, 0, NULL); /* wait until the file is written */
        if (code)
            snprintf(reason, sizeof reason, "%s", fail_reason());
        if (decoder_uses_hints(&session->plugins->decoder) &&
            hints_file_load(catalog, &catalog->hints) && told->path[0])
            result_notice(session->result, "%s: not used", fail_reason());
        recorder_mark(session->recorder, "entry points", hinting->epoch, start_ns);
    }
    told->keep_ns = clock_now_ns() - start_ns;
    fail_clear();
    const bool tells = session->ranks->place.rank == 0;
    if (code == 0 && tells && !told->were_made)
        result_notice(session->result, "entry points of all images drawn existed: none were made");
    else if (code == 0 && tells && told->path[0] == '\0')
        result_notice(session->result, "entry points were not kept: %s", told->reason);
    if (code == 0)
        return 0;
    /* After an interruption only this reason is certain to be printed. */
    if (!tells || !told->were_made)
        return fail(code, "%s", reason);
    if (told->path[0])
        return fail(code, "%s; entry points of %llu images are in %s", reason,
                    (unsigned long long)told->kept_images, told->path);
    return fail(code, "%s; entry points were not kept: %s", reason, told->reason);
}
