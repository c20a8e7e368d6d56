/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/job.h"

#include "base/fail.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const drop_choices[] = {"no", "yes", "strict", NULL};
static const char *const error_choices[] = {"stop", "skip", NULL};

/* clang-format off */
#define FIELD(field) .offset = offsetof(struct job, field)
const struct option_spec job_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(data), .metavar = "PATH", .section = "What is read",
     .summary = "file or folder of the data set, or nfs://server/export/path; without it a synthetic "
                "set is made once and kept"},
    {"format", 'f', OPTION_TEXT, FIELD(format), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "how samples lie in files; auto looks at names and first bytes"},
    {"as", 0, OPTION_TEXT, FIELD(as), .metavar = "FRAMEWORK",
     .summary = "format, order, partition and reader as mxnet, horovod-tensorflow or caffe2 has "
                "them; other options change single ones"},
    {"limit-samples", 0, OPTION_COUNT, FIELD(limit_samples), .fallback = "all", .zero = "all",
     .summary = "end each epoch after so many samples"},
    {"crc", 0, OPTION_FLAG, FIELD(check_crc), .fallback = "yes",
     .summary = "parse every record and check its CRC, also with --decode none"},
    {"on-error", 0, OPTION_CHOICE, FIELD(on_error), .fallback = "stop", .choices = error_choices,
     .summary = "what a damaged record or a failed read does; skip counts it and marks the result"},

    {"reader", 'r', OPTION_TEXT, FIELD(reader), .fallback = "auto", .metavar = "NAME[:...]",
     .section = "How it is read",
     .summary = "I/O engine; auto is io_uring, or blocking reads where it is refused; nfs for nfs://"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(iodepth), .fallback = "32", .zero = "auto",
     .minimum = 0, .maximum = 65536, .summary = "reads kept in flight"},
    {"loaders", 0, OPTION_COUNT, FIELD(loaders), .fallback = "auto", .zero = "auto",
     .maximum = 64,
     .summary = "threads that read, each with its own ring and memory on one NUMA node; auto is 1"},
    {"bs", 'b', OPTION_SIZE, FIELD(block_bytes), .fallback = "1MiB", .minimum = 512,
     .maximum = 1 << 30, .summary = "neighbouring records are read together up to this size"},
    {"direct", 0, OPTION_FLAG, FIELD(direct), .fallback = "no",
     .summary = "bypass the page cache (O_DIRECT)"},
    {"memory", 'm', OPTION_SIZE, FIELD(memory_bytes), .fallback = "auto", .zero = "auto",
     .summary = "for records in flight and in shuffle buffers; auto takes a share of what is free"},
    {"io-timeout", 0, OPTION_DURATION, FIELD(io_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "a read that takes longer has failed"},
    {"limit-rate", 0, OPTION_SIZE, FIELD(rate_limit_bytes), .fallback = "none", .zero = "none",
     .summary = "read at most so many bytes a second"},

    {"shuffle", 's', OPTION_TEXT, FIELD(shuffle), .fallback = "epoch", .metavar = "NAME[:...]",
     .section = "In which order", .summary = "order of the samples of an epoch"},
    {"seed", 0, OPTION_COUNT, FIELD(seed), .fallback = "1",
     .summary = "the same seed gives the same order and the same crops"},
    {"resume-at", 0, OPTION_TEXT, FIELD(resume_at), .metavar = "EPOCH:SAMPLE",
     .summary = "start there, both from 0, reading nothing before it; as after a checkpoint"},
    {"ranks", 0, OPTION_COUNT, FIELD(ranks), .fallback = "1", .minimum = 1, .maximum = 1 << 20,
     .summary = "the data set is shared by so many processes; mpirun and srun say it by themselves"},
    {"rank", 0, OPTION_COUNT, FIELD(rank), .fallback = "0", .maximum = 1 << 20,
     .summary = "which of them this one is, from 0"},
    {"partition", 0, OPTION_CHOICE, FIELD(partition), .fallback = "disjoint",
     .choices = plan_partition_names, .summary = "how samples are dealt to ranks"},
    {"remainder", 0, OPTION_CHOICE, FIELD(remainder), .fallback = "uneven",
     .choices = plan_remainder_names,
     .summary = "what is done when they cannot be dealt evenly"},
    {"silence", 0, OPTION_DURATION, FIELD(silence_ns), .fallback = "60s", .zero = "none",
     .summary = "a rank that gives no sign of life for so long while others wait for it ends the job"},

    {"decode", 0, OPTION_TEXT, FIELD(decode), .fallback = "jpeg", .metavar = "NAME[:...]",
     .section = "What is done with it", .summary = "decoder of the images; none delivers them as they are"},
    {"threads", 't', OPTION_COUNT, FIELD(threads), .fallback = "auto", .zero = "auto",
     .maximum = 4096, .summary = "decode workers; auto is one a CPU"},
    {"trainer", 'T', OPTION_TEXT, FIELD(trainer), .fallback = "none", .metavar = "NAME[:...]",
     .summary = "what takes the batches: replay:h200 waits as an H200 would compute, resnet50 trains"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples in a batch"},
    {"prefetch", 0, OPTION_COUNT, FIELD(prefetch_batches), .fallback = "2", .minimum = 1,
     .maximum = 1024, .summary = "decoded batches kept ready for the trainer"},
    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20, .summary = "passes over the data set in each run"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1, .maximum = 10000,
     .summary = "repetitions of the whole; the median and its 95% interval are reported"},
    {"overlap-epochs", 0, OPTION_FLAG, FIELD(overlap_epochs), .fallback = "no",
     .summary = "make the next order and begin to read it before this epoch is used up"},

    {"drop-caches", 'c', OPTION_CHOICE, FIELD(drop_caches), .fallback = "no",
     .choices = drop_choices, .implied = "yes", .section = "Cold or warm",
     .summary = "empty the caches before each run and prove it; strict fails when it cannot be proven"},
    {"memory-limit", 0, OPTION_SIZE, FIELD(memory_limit_bytes), .fallback = "none", .zero = "none",
     .summary = "keep memory and page cache together below this, so that a small set is read again "
                "in each epoch as a large one is (control groups: as root, or a group of your own)"},
    {"server-drop-cmd", 0, OPTION_TEXT, FIELD(server_drop_command), .metavar = "COMMAND",
     .summary = "also run this before each run, to empty the caches of a storage server"},
    {"drop-timeout", 0, OPTION_DURATION, FIELD(drop_timeout_ns), .fallback = "10m", .zero = "none",
     .summary = "give up dropping after so long"},

    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .section = "What comes out",
     .summary = "write the whole result; - is standard output instead of the table"},
    {"csv", 0, OPTION_TEXT, FIELD(csv), .metavar = "FILE",
     .summary = "write one row an epoch; - is standard output instead of the table"},
    {"sample-interval", 0, OPTION_DURATION, FIELD(sample_interval_ns), .fallback = "100ms",
     .zero = "none", .minimum = 0.01, .maximum = 3600,
     .summary = "read the counters of machine and pipeline so often, for the time series"},
    {"series", 0, OPTION_TEXT, FIELD(series), .metavar = "FILE",
     .summary = "write the time series as CSV, a row a sample; - is standard output"},
    {"label", 0, OPTION_TEXT, FIELD(label), .metavar = "TEXT",
     .summary = "free text kept in the result"},
    {"digest", 0, OPTION_FLAG, FIELD(digest), .fallback = "no",
     .summary = "print a checksum over all (label, image), the same for every order"},
    {"calibrate", 0, OPTION_FLAG, FIELD(calibrate), .fallback = "yes",
     .summary = "measure first what the program itself can do without storage"},
    {"dry-run", 0, OPTION_FLAG, FIELD(dry_run), .fallback = "no",
     .summary = "say what would be done and how much memory it takes; read nothing"},
    {0},
};
#undef FIELD
/* clang-format on */

static int choose(const char *family, const struct plugin *const *registry, const char *text,
                  struct plugin_choice *choice)
{
    int code = plugin_choose(family, registry, text, choice);

    return code ? code : plugin_usable(choice->plugin);
}

/* "auto" is the first reader of the registry that works here: it stands in order of preference. A
 * server that is no part of the file system has a reader of its own. */
static const char *reader_name(const struct job *job)
{
    if (strcmp(job->reader, "auto") != 0)
        return job->reader;
    if (job->data && !store_is_local(job->data))
        return "nfs";
    for (int i = 0; reader_registry[i]; i++)
        if (plugin_usable(reader_registry[i]) == 0)
            return reader_registry[i]->name;
    return job->reader;
}

/* --direct is for readers that have such an option of their own. */
static int apply_direct(const struct job *job, struct plugin_choice *reader)
{
    if (!job->direct || strcmp(reader->plugin->name, "nfs") == 0) /* it never uses the cache */
        return 0;
    if (!reader->plugin->options || !option_find(reader->plugin->options, "direct"))
        return fail(EINVAL, "--direct: the reader %s cannot bypass the page cache",
                    reader->plugin->name);
    return option_set(reader->plugin->options, reader->settings, "direct", "yes", "--direct");
}

uint32_t job_loaders(const struct job *job)
{
    return job->loaders ? (uint32_t)job->loaders : 1;
}

int job_resume(const struct job *job, struct job_place *place)
{
    unsigned long long epoch, sample;
    int end = 0;

    *place = (struct job_place){0};
    if (!job->resume_at)
        return 0;
    if (sscanf(job->resume_at, "%llu:%llu%n", &epoch, &sample, &end) != 2 ||
        job->resume_at[end] != '\0')
        return fail(EINVAL, "--resume-at: '%s' is not EPOCH:SAMPLE, as in 3:25600", job->resume_at);
    if (sample % job->batch_size)
        return fail(EINVAL, "--resume-at: sample %llu is not at the start of a batch of %llu",
                    sample, (unsigned long long)job->batch_size);
    *place = (struct job_place){.epoch = epoch, .sample = sample};
    return 0;
}

int job_stdout_count(const struct job *job)
{
    const char *const files[] = {job->json, job->csv, job->series};
    int count = 0;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        count += files[i] && strcmp(files[i], "-") == 0;
    return count;
}

/* A reader of files needs files. Compressed shards come from their store whatever it is. */
static int check_reader(const struct job *job, const struct plugin *reader)
{
    static const char *const names[] = {"nfs", "inflate", "null", NULL};

    if (!job->data || store_is_local(job->data))
        return 0;
    for (int i = 0; names[i]; i++)
        if (strcmp(reader->name, names[i]) == 0)
            return 0;
    return fail(EINVAL, "--reader %s reads files; %s is read by the reader nfs, or mount it",
                reader->name, job->data);
}

static int check(const struct job *job)
{
    struct plugin_choice format;
    struct job_place place;

    if (job->rank >= job->ranks)
        return fail(EINVAL, "--rank %llu: with --ranks %llu ranks are numbered 0 to %llu",
                    (unsigned long long)job->rank, (unsigned long long)job->ranks,
                    (unsigned long long)job->ranks - 1);
    if (job->server_drop_command && job->drop_caches == JOB_DROP_NO)
        return fail(EINVAL, "--server-drop-cmd is run only with --drop-caches");
    if (job_stdout_count(job) > 1)
        return fail(EINVAL, "one alone of --json, --csv and --series can have the standard output");
    if (job->series && !job->sample_interval_ns)
        return fail(EINVAL, "--series: with --sample-interval none there is nothing to write");
    int resumes = job_resume(job, &place);
    if (resumes)
        return resumes;
    if (strcmp(job->format, "auto") == 0)
        return 0;
    int code = plugin_choose("format", format_registry, job->format, &format);
    if (code == 0)
        plugin_release(&format);
    return code;
}

int job_choose(const struct job *job, struct job_plugins *plugins)
{
    *plugins = (struct job_plugins){0};
    int code = check(job);
    if (code == 0)
        code = choose("reader", reader_registry, reader_name(job), &plugins->reader);
    if (code == 0)
        code = check_reader(job, plugins->reader.plugin);
    if (code == 0)
        code = apply_direct(job, &plugins->reader);
    if (code == 0)
        code = choose("shuffle", shuffle_registry, job->shuffle, &plugins->shuffle);
    if (code == 0)
        code = choose("decoder", decoder_registry, job->decode, &plugins->decoder);
    if (code == 0)
        code = trainer_choose(job->trainer, &plugins->trainer);
    if (code == 0)
        code = plugin_usable(plugins->trainer.plugin);
    if (code)
        job_release(plugins);
    return code;
}

int job_share(struct job *job, const struct ranks_place *place)
{
    if (place->ranks == 1)
        return 0;
    if (job->ranks != 1 || job->rank != 0)
        return fail(EINVAL, "--ranks and --rank: mpirun or srun says them here, %u ranks",
                    place->ranks);
    job->ranks = place->ranks;
    job->rank = place->rank;
    if (job->remainder == PLAN_UNEVEN && trainer_is_synchronous(job->trainer))
        job->remainder = PLAN_DROP;
    return 0;
}

void job_release(struct job_plugins *plugins)
{
    plugin_release(&plugins->format);
    plugin_release(&plugins->reader);
    plugin_release(&plugins->shuffle);
    plugin_release(&plugins->decoder);
    plugin_release(&plugins->trainer);
}
