/* SPDX-License-Identifier: Apache-2.0
 * size --measure: the service curve of a storage, by sizes of reads and reads in flight, as a
 * profile. The cells take turns in an order drawn anew for each round, so drift of a shared storage
 * affects all alike. */
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/text_stream.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "cmd/size/size.h"
#include "pipeline/result/gather.h"
#include "readers/service.h"
#include "report/report.h"
#include "report/words.h"
#include "cmd/size/curve.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 5, CELLS_MOST = SIZING_CURVE_SIZES * SIZING_CURVE_DEPTHS, FOLDERS_DEEP = 16 };
/* Percent of the bytes read, as of a run; a count of all processes that is larger is not of these.
 */
static const double share_least = 98, share_most = 150;
static const uint64_t memory_most = 512 << 20, timeout_ns = UINT64_C(60000000000);

struct cell {
    uint32_t read_bytes, depth; /* of each rank */
    double rates[ROUNDS];       /* bytes/s of all ranks */
    double latency_s, latency_cv;
    struct stats_summary rate;
};

struct storage_survey {
    const struct size_settings *settings;
    const char *command;
    struct ranks ranks;
    struct catalog *files;
    struct plugin_choice reader;
    struct iovec memory;
    struct cell cells[CELLS_MOST];
    uint32_t cell_count;
    bool is_direct;
    bool is_local;    /* disks of the nodes; else one storage serves all */
    uint32_t sharing; /* ranks that share a storage: those of a node, or all */
    struct storage *storage;
    struct guard_counts guard;
    uint64_t bytes;      /* read by this rank */
    double left_percent; /* of the bytes of all ranks, that left storage; NAN: unknown */
    bool others_read;    /* it is unknown, as more was counted than these ranks read */
    char witness[160];   /* what counted them, or why nothing did */
    char engine[SERVICE_ENGINE_BYTES];
};

/* ---- what is measured ---- */

static int add_files(struct storage_survey *survey, const char *path, int depth);

struct file_search {
    struct storage_survey *survey;
    const char *folder;
    int depth;
};

static int add_entry(void *context, const struct store_entry *entry)
{
    const struct file_search *search = context;

    if (entry->kind == STORE_OTHER || (entry->kind == STORE_FOLDER && entry->is_link))
        return 0;
    char *path = file_format_path("%s/%s", search->folder, entry->name);
    int code = path ? add_files(search->survey, path, search->depth + 1) : -ENOMEM;
    free(path);
    return code;
}

/* Add a file, or all files of a folder. */
static int add_files(struct storage_survey *survey, const char *path, int depth)
{
    struct file_search search = {survey, path, depth};
    struct store_status status;
    int code = store_stat(path, &status);

    if (code)
        return code;
    if (status.kind == STORE_FOLDER)
        return depth == FOLDERS_DEEP ? 0 : store_list(path, add_entry, &search);
    return status.kind == STORE_FILE && status.bytes
               ? catalog_begin_shard(survey->files, path, &status, 0)
               : 0;
}

static int choose_cells(struct storage_survey *survey)
{
    uint64_t sizes[SIZING_CURVE_SIZES], depths[SIZING_CURVE_DEPTHS];
    const struct option_list size_list = {"read-sizes", option_parse_size, 1 << 30,
                                          SIZING_CURVE_SIZES, true};
    const struct option_list depth_list = {"depths", option_parse_count, 1 << 16,
                                           SIZING_CURVE_DEPTHS, true};
    const int size_count = option_parse_list(&size_list, survey->settings->read_sizes, sizes);
    const int depth_count = option_parse_list(&depth_list, survey->settings->depths, depths);

    if (size_count < 0 || depth_count < 0)
        return -EINVAL;
    for (int i = 0; i < size_count; i++) {
        if (sizes[i] % 4096)
            return fail(EINVAL, "--read-sizes: %llu is not a multiple of 4 KiB",
                        (unsigned long long)sizes[i]);
        const uint64_t places = service_places(survey->files, (uint32_t)sizes[i]);
        for (int k = 0; k < depth_count && places; k++)
            if (k == 0 || sizes[i] * depths[k] <= memory_most)
                survey->cells[survey->cell_count++] =
                    (struct cell){.read_bytes = (uint32_t)sizes[i], .depth = (uint32_t)depths[k]};
    }
    return survey->cell_count ? 0
                              : fail(ENODATA, "--measure %s: no file is as large as a read",
                                     survey->settings->measure);
}

/* ---- measuring ---- */

/* Collective. Find out whether each node has a storage of its own: then figures are those of a
 * node, the mean of all. */
static int find_sharing(struct storage_survey *survey)
{
    const struct ranks_place *place = &survey->ranks.place;
    const char *path = survey->settings->measure;
    struct device_list *devices = memory_zeroed(sizeof *devices);
    /* Disks and memory of this machine serve this node alone. */
    const bool is_local = devices && store_is_local(path) &&
                          devices_of_path(&telemetry_roots_usual, path, devices) == 0 &&
                          (devices->count || devices->memory[0]) && !devices->elsewhere[0];
    double sums[] = {is_local, place->local_ranks * place->nodes != place->ranks};
    int code = ranks_sum(&survey->ranks, sums, 2);

    free(devices);
    survey->is_local = is_local;
    survey->sharing = is_local ? place->local_ranks : place->ranks;
    if (code == 0 && sums[0] > 0 && sums[0] < place->ranks)
        code = fail(EINVAL, "--measure %s: on a local disk on some nodes, but not on all",
                    survey->settings->measure);
    if (code == 0 && is_local && sums[1] > 0)
        code = fail(EINVAL, "--measure %s: local disks, but not as many ranks on each node",
                    survey->settings->measure);
    return code;
}

static int choose_reader(struct storage_survey *survey, bool direct)
{
    const struct store_ops *store = store_of(survey->settings->measure);
    const struct plugin *reader = reader_auto(store->scheme, false);

    plugin_release(&survey->reader);
    survey->reader = (struct plugin_choice){0};
    if (!reader)
        return fail(ENOTSUP, "no reader for %s", survey->settings->measure);
    int code = plugin_choose("reader", reader_registry, reader->name, &survey->reader);
    const bool has_option = reader->options && option_find(reader->options, "direct");
    survey->is_direct = reader_of(reader)->bypasses_cache || (has_option && direct);
    if (code == 0 && has_option && direct)
        code = option_set(reader->options, survey->reader.settings, "direct", "yes", "direct");
    return code;
}

/* The file system may refuse to bypass the page cache. */
static int open_reader(struct storage_survey *survey)
{
    struct service_figures figures;
    const struct cell *cell = &survey->cells[0];
    const struct service one = {.catalog = survey->files,
                                .reader = &survey->reader,
                                .read_bytes = cell->read_bytes,
                                .depth = 1,
                                .timeout_ns = timeout_ns,
                                .memory = survey->memory};
    int code = choose_reader(survey, true);

    if (code == 0)
        code = service_measure(&one, &figures);
    if (code == -EINVAL && survey->is_direct) {
        code = choose_reader(survey, false);
        if (code == 0)
            code = service_measure(&one, &figures);
    }
    snprintf(survey->engine, sizeof survey->engine, "%s", figures.engine);
    return code;
}

static int prepare(struct storage_survey *survey)
{
    const char *path = survey->settings->measure;
    uint64_t bytes = 0;

    survey->files = catalog_create(path, "files");
    int code = survey->files ? add_files(survey, path, 0) : -ENOMEM;
    if (code == 0 && survey->files->shard_count == 0)
        code = fail(ENODATA, "--measure %s: no files to read", path);
    if (code == 0)
        code = choose_cells(survey);
    for (uint32_t i = 0; i < survey->cell_count; i++) {
        const struct cell *cell = &survey->cells[i];
        const uint64_t needed = (uint64_t)cell->read_bytes * cell->depth;
        bytes = needed > bytes ? needed : bytes;
    }
    if (code)
        return code;
    survey->memory = (struct iovec){.iov_base = memory_pages(bytes), .iov_len = bytes};
    if (!survey->memory.iov_base)
        return -ENOMEM;
    memset(survey->memory.iov_base, 0, bytes); /* page faults stay off the clock */
    return open_reader(survey);
}

/* Collective. */
static int measure_cell(struct storage_survey *survey, struct cell *cell, uint32_t round)
{
    struct service_figures figures;
    const struct service service = {
        .catalog = survey->files,
        .reader = &survey->reader,
        .read_bytes = cell->read_bytes,
        .depth = cell->depth,
        .duration_ns = survey->settings->measure_ns,
        .timeout_ns = timeout_ns,
        .seed = random_hash(survey->settings->seed, round, survey->ranks.place.rank),
        .memory = survey->memory};
    int code = ranks_meet(&survey->ranks, 0, NULL); /* all begin together */

    if (code == 0)
        code = service_measure(&service, &figures);
    code = ranks_meet(&survey->ranks, code, NULL);
    if (code)
        return code;
    survey->bytes += figures.bytes;
    cell->rates[round] = figures.bytes_per_s * survey->sharing / survey->ranks.place.ranks;
    cell->latency_s = figures.latency_s;
    cell->latency_cv = figures.latency_cv;
    return ranks_sum(&survey->ranks, &cell->rates[round], 1);
}

/* ---- did the bytes leave storage? ---- */

/* Collective. Neither reads past the page cache nor a rate that looks like a disk's prove it: files
 * have holes, and file systems read some files through the page cache all the same. */
static int ask_witness(struct storage_survey *survey, const struct storage_bytes *before)
{
    struct storage_bytes after;
    struct storage_share share;

    storage_read(survey->storage, &after);
    storage_between(survey->storage, before, &after, &share);
    const bool is_local = store_is_local(survey->settings->measure);
    const bool counts = !share.of_node || survey->ranks.place.local_rank == 0;
    double sums[] = {(double)survey->bytes, counts ? (double)share.bytes : 0,
                     !(share.known || share.in_memory) || !is_local, share.of_node};
    int code = ranks_sum(&survey->ranks, sums, 4);
    const double percent = sums[0] > 0 ? 100 * sums[1] / sums[0] : NAN;

    survey->others_read = sums[2] <= 0 && sums[3] > 0 && percent > share_most;
    survey->left_percent = sums[2] > 0 || survey->others_read ? NAN : percent;
    snprintf(survey->witness, sizeof survey->witness, "%s",
             share.known ? share.method
             : is_local  ? share.reason
                         : "it bypasses the kernel's file systems, which do not count it");
    if (survey->others_read)
        snprintf(survey->witness, sizeof survey->witness, "others read, too: %.1f%%, %.100s",
                 percent, share.method);
    return code;
}

static int measure_and_ask(struct storage_survey *survey)
{
    struct line line = line_start();
    uint32_t order[CELLS_MOST];
    char bar[LINE_PART_BYTES], text[sizeof line.last];
    struct storage_bytes before;
    struct guard_moment start;
    const struct catalog *files = survey->files;
    const char **paths = memory_array(files->shard_count, sizeof *paths);

    for (uint32_t i = 0; paths && i < files->shard_count; i++)
        paths[i] = files->shards[i].path;
    if (paths)
        survey->storage = storage_open(&telemetry_roots_usual, paths, files->shard_count);
    free(paths);
    int code = ranks_meet(&survey->ranks, survey->storage ? 0 : -ENOMEM, NULL);
    if (code)
        return code;
    storage_read(survey->storage, &before);
    guard_begin(&start);
    for (uint32_t round = 0; round < ROUNDS && code == 0; round++) {
        random_order(survey->settings->seed, round, order, survey->cell_count);
        for (uint32_t i = 0; i < survey->cell_count && code == 0; i++) {
            snprintf(text, sizeof text, "measuring %s",
                     line_bar(bar, (uint64_t)round * survey->cell_count + i,
                              (uint64_t)ROUNDS * survey->cell_count));
            if (survey->ranks.place.rank == 0)
                line_show(&line, text);
            code = measure_cell(survey, &survey->cells[order[i]], round);
        }
    }
    line_clear(&line);
    guard_end(&start, &survey->guard);
    for (uint32_t i = 0; i < survey->cell_count && code == 0; i++)
        survey->cells[i].rate = stats_summarise(survey->cells[i].rates, ROUNDS);
    if (code == 0)
        code = gather_guard(&survey->ranks, &survey->guard);
    return code ? code : ask_witness(survey, &before);
}

/* ---- the result ---- */

static struct quantity quantity_of(const struct stats_summary *rate, double scale)
{
    return quantity_of_interval(rate->median * scale, rate->low * scale, rate->high * scale);
}

enum { STARVED_BYTES = 128 };

static const char *starved_text(const struct storage_survey *survey, char *text)
{
    snprintf(
        text, STARVED_BYTES,
        "CPUs were short: a thread waited for one %.0f%% of the time, the hypervisor had %.0f%%",
        survey->guard.delayed_percent, survey->guard.stolen_percent);
    return text;
}

static void write_profile(FILE *stream, const struct storage_survey *survey)
{
    const struct cell *cells = survey->cells, *fastest = cells, *most = cells;
    const uint32_t ranks = survey->ranks.place.ranks, nodes = survey->ranks.place.nodes;
    char host[256] = "?", text[STARVED_BYTES];

    for (uint32_t i = 1; i < survey->cell_count; i++) {
        fastest = cells[i].rate.median > fastest->rate.median ? &cells[i] : fastest;
        most = cells[i].rate.median / cells[i].read_bytes > most->rate.median / most->read_bytes
                   ? &cells[i]
                   : most;
    }
    const struct quantity rate = quantity_of(&fastest->rate, 1),
                          reads = quantity_of(&most->rate, 1.0 / most->read_bytes);
    gethostname(host, sizeof host - 1);
    fputs(report_profile_mark, stream);
    fprintf(stream, "[storage]\ntitle=%s\nscope=%s\n", escape_shown(survey->settings->measure),
            survey->is_local ? "node" : "job");
    fputs("read-bytes-per-s=", stream);
    quantity_print(stream, &rate);
    fputs("\nread-iops=", stream);
    quantity_print(stream, &reads);
    fprintf(stream, "\nlatency-s=%.4g\nlatency-cv=%.3g\n", cells[0].latency_s, cells[0].latency_cv);
    for (uint32_t i = 0; i < survey->cell_count;) {
        struct sizing_curve_row row = {.read_bytes = cells[i].read_bytes};
        for (; i < survey->cell_count && cells[i].read_bytes == row.read_bytes; i++) {
            row.depths[row.count] = (double)cells[i].depth * survey->sharing;
            row.bytes_per_s[row.count++] = quantity_of(&cells[i].rate, 1);
        }
        fprintf(stream, "curve-%.0f=", row.read_bytes);
        sizing_curve_print(stream, &row);
        fputc('\n', stream);
    }
    if (survey->left_percent < share_least)
        fprintf(stream, "doubt=DEGRADED: only %.1f%% of the bytes left storage\n",
                survey->left_percent);
    else if (survey->others_read)
        fputs("doubt=how many bytes left storage is not known: others read, too\n", stream);
    else if (survey->guard.is_starved)
        fprintf(stream, "doubt=%s\n", starved_text(survey, text));
    else if (!survey->is_direct)
        fputs("doubt=measured through the page cache, which was not verified cold\n", stream);
    fprintf(stream, "source=measured by iobench %s on %s", PACKAGE_VERSION, escape_shown(host));
    fprintf(stream, ": %s", escape_shown(survey->command));
    fprintf(stream, "; %u rank%s", ranks, ranks > 1 ? "s" : "");
    if (survey->is_local && nodes > 1)
        fprintf(stream, " on %u nodes, each with its own disks: their mean", nodes);
    fprintf(stream, "; %s%s", survey->engine,
            survey->is_direct ? "; caches of servers not verified"
                              : "; through the page cache, not verified cold");
    if (isfinite(survey->left_percent))
        fprintf(stream, "; %s%.1f%% of the bytes left storage",
                survey->left_percent < share_least ? "DEGRADED: only " : "", survey->left_percent);
    fprintf(stream, " (%s)\n", survey->witness);
}

static void print_table(const struct storage_survey *survey)
{
    const struct cell *cells = survey->cells;
    char size[32], rate[WORDS_BYTES], reads[WORDS_BYTES], text[STARVED_BYTES];

    printf("Random reads of %u file%s, %s%s\n\n", survey->files->shard_count,
           survey->files->shard_count > 1 ? "s" : "", survey->engine,
           survey->is_direct ? "" : "; through the page cache: may be the speed of memory");
    printf("  %10s%10s%12s%12s%8s\n", "size", "in flight", "MB/s", "reads/s", "+-");
    for (uint32_t i = 0; i < survey->cell_count; i++) {
        const struct quantity figure = quantity_of(&cells[i].rate, 1);
        printf("  %10s%10u%12s%12s%7.1f%%\n", bytes_text(cells[i].read_bytes, size, sizeof size),
               cells[i].depth * survey->sharing, words_rate(figure.value / 1e6, rate),
               words_rate(figure.value / cells[i].read_bytes, reads), 100 * figure.spread);
    }
    if (survey->is_local && survey->ranks.place.nodes > 1)
        printf("\nOf a node's own disks: the mean of %u nodes.", survey->ranks.place.nodes);
    if (isfinite(survey->left_percent))
        printf("\n%.1f%% of the bytes left storage (%s).", survey->left_percent, survey->witness);
    else
        printf("\nHow many bytes left storage is not known: %s.", survey->witness);
    if (survey->guard.is_starved)
        printf("\nIn doubt: %s.", starved_text(survey, text));
    printf("\nMedians of %d rounds; +-: their 95%% interval. %s\n", ROUNDS,
           survey->settings->save ? "" : "--save FILE writes them as a profile.");
}

int size_measure(const struct invocation *invocation)
{
    struct storage_survey *survey = memory_zeroed(sizeof *survey);
    char command[4096];

    if (!survey)
        return command_failed(invocation);
    command_text(invocation, command, sizeof command);
    survey->settings = invocation->settings;
    survey->command = command;
    int code = command_join(&survey->ranks);
    command_on_interrupt(); /* after MPI has installed its handlers */
    const bool speaks = survey->ranks.place.rank == 0;
    if (code == 0 && speaks)
        code = outputs_check_path(survey->settings->save, report_profile_mark);
    if (code == 0)
        code = prepare(survey);
    if (survey->ranks.state)
        code = ranks_meet(&survey->ranks, code, NULL);
    if (code == 0)
        code = find_sharing(survey);
    if (code == 0)
        code = measure_and_ask(survey);
    if (code == 0 && speaks) {
        const char *path = survey->settings->save;
        const bool is_good = command_guard(&survey->guard) == GUARD_NOTICE;
        struct text_stream stream;
        if (!is_good || !path || strcmp(path, "-") != 0)
            print_table(survey);
        if (!is_good)
            code = fail(EPROTO, "not of the storage%s", path ? ": no profile" : "");
        else if (path && (code = text_stream_open(&stream)) == 0) {
            write_profile(stream.stream, survey);
            code = outputs_write(path, &stream);
        }
    }
    /* A figure that is not of a storage is written, but with a reason and exit status 1. */
    if (code == 0 && speaks && survey->left_percent < share_least)
        code = fail(EPROTO,
                    "DEGRADED: only %.1f%% of the bytes left storage (%s): the others are holes "
                    "of the files, or came from memory, or the file system compresses",
                    survey->left_percent, survey->witness);
    const int status = code == 0                            ? COMMAND_OK
                       : speaks || survey->ranks.is_unheard ? command_failed(invocation)
                                                            : COMMAND_FAILED;
    command_leave(&survey->ranks, code < 0);
    if (code != -ETIMEDOUT) /* the kernel may still write to it */
        free(survey->memory.iov_base);
    plugin_release(&survey->reader);
    storage_close(survey->storage);
    catalog_destroy(survey->files);
    free(survey);
    return status;
}
