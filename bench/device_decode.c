/* SPDX-License-Identifier: Apache-2.0
 *
 * Two decoders on the same synthetic images (110 kB, as in ImageNet), in memory: how near the rows
 * of the second are to those of the first, and the rate of each by decode threads.
 *
 *     device_decode [OPTION...] DECODER DECODER
 *
 * --images N, of each thread; --seconds N, of each rate; --threads N: 1, 2, 4 ... N; --least DB:
 * fails if a row's PSNR is below, or if a decoder on a device leaves images to the CPU. Each thread
 * decodes all images once before its time begins; with several threads rows are compared, too.
 * Exits with 77 if a decoder cannot run here.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "dataset/synthesis.h"
#include "decode/decoder.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64, USAGE = 2 };

struct options {
    uint32_t images, threads;
    double seconds, least;
};

struct stored {
    uint32_t count;
    struct decode_source *sources;
};

static void must(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench/device_decode: %s\n", fail_reason());
    exit(code == -ENODEV || code == -ENOENT ? 77 : 1);
}

static void make_images(struct stored *images, uint32_t count)
{
    struct synthesis *synthesis = synthesis_open(&synthesis_imagenet);
    struct sample sample;

    images->count = count;
    images->sources = calloc(count, sizeof *images->sources);
    must(synthesis && images->sources ? 0 : -ENOMEM);
    for (uint32_t i = 0; i < count; i++) {
        must(synthesis_make(synthesis, i, &sample));
        void *copy = malloc(sample.image_bytes);
        must(copy ? 0 : fail(ENOMEM, "out of memory"));
        images->sources[i] = (struct decode_source){
            .bytes = memcpy(copy, sample.image, sample.image_bytes), .length = sample.image_bytes};
    }
    synthesis_close(synthesis);
}

static void free_images(struct stored *images)
{
    for (uint32_t i = 0; i < images->count; i++)
        free((void *)(uintptr_t)images->sources[i].bytes);
    free(images->sources);
}

/* Rows of all images in round 0, by the decoder that is compared with. */
struct reference {
    const char *decoder;
    uint8_t *rows;
    size_t row_bytes;
};

/* How near rows are to those. */
struct likeness {
    double worst, sum; /* PSNR, dB; sum: of those that differ */
    uint64_t equal, rows;
};

/* One decode thread, with a row for each image. */
struct thread_state {
    const struct stored *images;
    const struct reference *reference;
    struct decoder decoder;
    uint8_t *rows;
    pthread_t handle;
    pthread_barrier_t *barrier;
    double seconds;
    uint64_t done; /* in that time */
    struct likeness likeness;
    int code;
};

static int finish_pending(struct decoder *decoder)
{
    int code = 0;

    for (uint32_t i = 0, count = decoder->pending; i < count; i++) {
        const int one = decoder_finish(decoder, i);
        code = code ? code : one;
    }
    return code;
}

/* As a decode thread of a run does it. */
static int decode_all(struct thread_state *state, uint64_t round)
{
    struct decoder *decoder = &state->decoder;
    int code = 0;

    for (uint32_t i = 0; i < state->images->count && code == 0; i++) {
        const struct view view = view_of_record(1, round, i);
        uint8_t *row = state->rows + i * decoder->traits.row_bytes;
        if (decoder->pending > 0 && decoder->pending == decoder->traits.pending)
            code = finish_pending(decoder);
        int one = decoder_begin(decoder, &state->images->sources[i], &view, row);
        if (one == DECODE_FULL) {
            code = finish_pending(decoder);
            one = decoder_begin(decoder, &state->images->sources[i], &view, row);
        }
        if (one < 0 && code == 0)
            code = one;
    }
    const int last = finish_pending(decoder);
    return code ? code : last;
}

static void open_state(struct thread_state *state, const struct stored *images,
                       const struct plugin_choice *choice)
{
    *state = (struct thread_state){.images = images};
    must(plugin_usable(choice->plugin) ? -ENODEV : 0);
    must(decoder_open(&state->decoder, choice));
    state->rows = malloc(images->count * state->decoder.traits.row_bytes);
    must(state->rows ? 0 : fail(ENOMEM, "out of memory"));
}

static void close_state(struct thread_state *state)
{
    decoder_close(&state->decoder);
    free(state->rows);
}

static double psnr(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    double squares = 0;

    for (size_t i = 0; i < bytes; i++)
        squares += (double)(a[i] - b[i]) * (a[i] - b[i]);
    return squares > 0 ? 10 * log10(255.0 * 255.0 * (double)bytes / squares) : INFINITY;
}

static void compare_rows(struct thread_state *state)
{
    const size_t bytes = state->reference->row_bytes;
    struct likeness *likeness = &state->likeness;

    for (uint32_t i = 0; i < state->images->count && state->code == 0; i++) {
        const double one = psnr(state->reference->rows + i * bytes, state->rows + i * bytes, bytes);
        likeness->worst = fmin(likeness->worst, one);
        likeness->equal += isinf(one) != 0;
        likeness->sum += isinf(one) ? 0 : one;
        likeness->rows++;
    }
}

/* All images before the time begins, and after it, while others decode, too: those rows are
 * compared. */
static void *work(void *argument)
{
    struct thread_state *state = argument;
    uint64_t round = 0;

    state->code = decode_all(state, 0);
    compare_rows(state);
    pthread_barrier_wait(state->barrier);
    const uint64_t until_ns = clock_now_ns() + (uint64_t)(state->seconds * 1e9);
    while (state->code == 0 && clock_now_ns() < until_ns) {
        state->code = decode_all(state, ++round);
        state->done += state->images->count;
    }
    pthread_barrier_wait(state->barrier);
    if (state->code == 0)
        state->code = decode_all(state, 0);
    compare_rows(state);
    return NULL;
}

static uint64_t process_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Returns whether all rows are near enough. */
static bool tell(const struct thread_state *states, uint32_t threads, const char *decoder,
                 double wall_s, double cpu_s, double least)
{
    struct likeness all = {.worst = INFINITY};
    uint64_t done = 0, on_cpu = 0;
    const char *notice = NULL;

    for (uint32_t i = 0; i < threads; i++) {
        done += states[i].done;
        on_cpu += states[i].decoder.figures.on_cpu;
        all.worst = fmin(all.worst, states[i].likeness.worst);
        all.sum += states[i].likeness.sum;
        all.equal += states[i].likeness.equal;
        all.rows += states[i].likeness.rows;
        if (states[i].decoder.traits.notice && states[i].decoder.traits.notice[0])
            notice = states[i].decoder.traits.notice;
    }
    printf("%-32s %2u threads:", decoder, threads);
    if (done)
        printf(" %8.0f images/s, %6.0f us of CPU an image;", (double)done / wall_s,
               cpu_s * 1e6 / (double)done);
    printf(" %" PRIu64 " of %" PRIu64 " rows are those of %s", all.equal, all.rows,
           states->reference->decoder);
    if (all.equal < all.rows)
        printf(", the others: PSNR %.1f dB on average, %.1f the worst",
               all.sum / (double)(all.rows - all.equal), all.worst);
    printf("; %" PRIu64 " left to the CPU%s%s%s\n", on_cpu, notice ? " (" : "",
           notice ? notice : "", notice ? ")" : "");
    fflush(stdout);
    return all.worst >= least && (least <= 0 || on_cpu == 0);
}

static bool time_threads(const struct stored *images, const struct reference *reference,
                         const struct plugin_choice *choice, uint32_t threads,
                         const struct options *options)
{
    static struct thread_state states[THREADS_MAX];
    pthread_barrier_t barrier;

    must(-pthread_barrier_init(&barrier, NULL, threads + 1));
    for (uint32_t i = 0; i < threads; i++) {
        open_state(&states[i], images, choice);
        if (states[i].decoder.traits.row_bytes != reference->row_bytes)
            must(fail(EINVAL, "the decoders' rows differ in size"));
        states[i].reference = reference;
        states[i].barrier = &barrier;
        states[i].seconds = options->seconds;
        states[i].likeness.worst = INFINITY;
        must(-pthread_create(&states[i].handle, NULL, work, &states[i]));
    }
    pthread_barrier_wait(&barrier);
    const uint64_t start_ns = clock_now_ns(), cpu_ns = process_cpu_ns();
    pthread_barrier_wait(&barrier);
    const double wall_s = (double)(clock_now_ns() - start_ns) / 1e9;
    const double cpu_s = (double)(process_cpu_ns() - cpu_ns) / 1e9;
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(states[i].handle, NULL);
        if (states[i].code)
            must(fail(EIO, "%s: an image could not be decoded", choice->text));
    }
    const bool good = tell(states, threads, choice->text, wall_s, cpu_s, options->least);
    for (uint32_t i = 0; i < threads; i++)
        close_state(&states[i]);
    pthread_barrier_destroy(&barrier);
    return good;
}

static struct reference make_reference(const struct stored *images,
                                       const struct plugin_choice *choice)
{
    struct thread_state state;

    open_state(&state, images, choice);
    must(decode_all(&state, 0));
    const struct reference reference = {choice->text, state.rows, state.decoder.traits.row_bytes};
    decoder_close(&state.decoder);
    return reference;
}

static int usage(void)
{
    fprintf(stderr, "usage: device_decode [--images N] [--seconds N] [--threads N] [--least DB] "
                    "DECODER DECODER\n");
    return USAGE;
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {{"images", required_argument, NULL, 'i'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"least", required_argument, NULL, 'l'},
                                          {0}};
    int which;

    while ((which = getopt_long(argc, argv, "", longs, NULL)) >= 0)
        if (which == 'i')
            options->images = (uint32_t)strtoul(optarg, NULL, 10);
        else if (which == 's')
            options->seconds = strtod(optarg, NULL);
        else if (which == 't')
            options->threads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (which == 'l')
            options->least = strtod(optarg, NULL);
        else
            return false;
    return argc - optind == 2 && options->images > 0 && options->threads <= THREADS_MAX;
}

int main(int argc, char **argv)
{
    struct options options = {.images = 256, .threads = 1, .seconds = 2};
    struct plugin_choice choices[2];
    struct stored images;

    if (!parse(argc, argv, &options))
        return usage();
    for (int i = 0; i < 2; i++)
        must(plugin_choose("decoder", decoder_registry, argv[optind + i], &choices[i]));
    for (int i = 0; i < 2; i++)
        must(plugin_usable(choices[i].plugin) ? -ENODEV : 0);
    make_images(&images, options.images);
    const struct reference reference = make_reference(&images, &choices[0]);
    bool good = true;
    for (int i = 0; i < 2; i++)
        for (uint32_t threads = 1; threads <= options.threads; threads *= 2)
            good &= time_threads(&images, &reference, &choices[i], threads, &options);
    free(reference.rows);
    for (int i = 0; i < 2; i++)
        plugin_release(&choices[i]);
    free_images(&images);
    return good ? 0 : 1;
}
