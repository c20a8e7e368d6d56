/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/decode: what one core decodes, against the plain way and against what cannot be avoided.
 *
 *     bench/decode [--long] [FOLDER]     JPEG files of FOLDER, else made images
 *     bench/decode --round N [FOLDER]    only round N
 *     bench/decode --write FOLDER        keep the made images, for other programs to decode
 *     bench/decode --serve FOLDER        take turns with other programs: for each "ROUND VARIANT"
 *                                        on standard input, the microseconds of CPU of an image
 *                                        and the mean of the last row's upper left quarter; for
 *                                        "ROUND boxes" the box and the mirroring of each image
 *
 * Variants take turns every TURN images, so that all have the same share of a machine's slow
 * moments; CPU time of this thread; medians over the rounds.
 *   bound   Huffman decoding of the scan up to the crop's last row (libjpeg-turbo, coefficients
 *           dropped): a baseline JPEG cannot be cropped for less
 *   scan    the same for the whole scan
 *   plain   the whole image decoded with libjpeg's defaults, then crop and resize (with our resize)
 *   whole   the whole image decoded with libjpeg's defaults, rows dropped
 *   half    whole, shrunk by 1/2 in the inverse DCT; quarter: by 1/4
 *   own scan, own whole, ...: the same by decode/baseline; images that it leaves to libjpeg count
 * as libjpeg decodes them
 *   entered  random crops like jpeg, with entry points noted before
 *   noting   random crops like jpeg, noting entry points in passing
 *
 * Two threads that each decode all images against one that does: by the CPU time they take, which
 * other programs disturb least, and how often they waited; and by the wall clock, with that of a
 * loop that touches no memory, which is what the machine offers at that moment.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/thread.h"
#include "dataset/synthesis.h"
#include "decode/baseline/baseline.h"
#include "decode/decoder.h"
#include "kernels/resize.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <jpeglib.h>

enum { IMAGES_MAX = 1000, ROUNDS_MAX = 25, TURN = 10, SIDE = 224 };

enum {
    BOUND,
    SCAN,
    PLAIN,
    WHOLE,
    HALF,
    QUARTER,
    OWN_SCAN,
    OWN_WHOLE,
    OWN_HALF,
    OWN_QUARTER,
    ENTERED,
    NOTING,
    OURS,
    TURBO
};
static const char *const variants[] = {
    "bound",
    "scan",
    "plain",
    "whole",
    "half",
    "quarter",
    "own scan",
    "own whole",
    "own half",
    "own quarter",
    "entered",
    "noting",
    "jpeg",
    "jpeg:engine=turbo",
    "jpeg:upsampling=plain",
    "jpeg:dct=ifast",
    "jpeg:scale=any",
    "jpeg:scale=none",
    "jpeg:view=evaluate",
};
enum { VARIANTS = sizeof variants / sizeof *variants };

struct images {
    struct decode_source source[IMAGES_MAX];
    uint8_t hints[IMAGES_MAX][DECODE_HINT_MAX];
    size_t hint_bytes[IMAGES_MAX];
    int count;
    size_t bytes;
};

static int give_up(void)
{
    fprintf(stderr, "bench/decode: %s\n", fail_reason());
    return 1;
}

static int is_jpeg(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && (strcmp(dot, ".jpg") == 0 || strcmp(dot, ".JPEG") == 0);
}

/* In the order of their names, as other programs sort them. */
static int load_folder(struct images *images, const char *folder)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_jpeg, alphasort);

    if (count <= 0 || count > IMAGES_MAX)
        return fail(2, "%s: %d JPEG files, not 1 to %d", folder, count, IMAGES_MAX);
    for (int i = 0; i < count; i++) {
        struct decode_source *source = &images->source[i];
        char *path = file_join(folder, entries[i]->d_name), *bytes;
        if (!path || file_load(path, 64 << 20, &bytes, &source->length))
            return -1;
        free(path);
        free(entries[i]);
        source->bytes = bytes;
        images->bytes += source->length;
    }
    free(entries);
    images->count = count;
    return 0;
}

static int make_images(struct images *images, int count, const char *folder)
{
    struct synthesis *synthesis = synthesis_open(&synthesis_imagenet);
    struct sample sample;

    if (!synthesis)
        return -1;
    for (int i = 0; i < count; i++) {
        if (synthesis_make(synthesis, (uint64_t)i, &sample))
            return -1;
        uint8_t *bytes = malloc(sample.image_bytes);
        memcpy(bytes, sample.image, sample.image_bytes);
        images->source[images->count++] =
            (struct decode_source){.bytes = bytes, .length = sample.image_bytes};
        images->bytes += sample.image_bytes;
        if (folder) {
            char *path = file_format_path("%s/%.*s", folder, (int)sample.name_bytes, sample.name);
            FILE *file = path ? fopen(path, "wb") : NULL;
            if (!file || fwrite(bytes, 1, sample.image_bytes, file) != sample.image_bytes)
                return fail(5, "%s: cannot write", path);
            fclose(file);
            free(path);
        }
    }
    synthesis_close(synthesis);
    return 0;
}

static void libjpeg_start(struct jpeg_decompress_struct *jpeg, const struct decode_source *source)
{
    jpeg_mem_src(jpeg, source->bytes, source->length);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_EXT_RGBX;
    jpeg_start_decompress(jpeg);
}

/* Skipped rows are Huffman-decoded without keeping coefficients. */
static void huffman(struct jpeg_decompress_struct *jpeg, const struct decode_source *source,
                    const struct view *view, bool all)
{
    libjpeg_start(jpeg, source);
    JDIMENSION rows = jpeg->output_height - 1;
    if (!all) {
        struct view_box box =
            view_box(view, &view_rules_imagenet, jpeg->output_width, jpeg->output_height);
        rows = (JDIMENSION)(box.y + box.height);
    }
    jpeg_skip_scanlines(jpeg, rows < jpeg->output_height ? rows : rows - 1);
    jpeg_abort_decompress(jpeg);
}

static void plain(struct jpeg_decompress_struct *jpeg, struct bump *bump,
                  const struct decode_source *source, const struct view *view, uint8_t *row)
{
    static uint8_t *image;
    static size_t capacity;
    uint8_t *rows[RESIZE_ROWS_MAX];
    struct resize resize;

    libjpeg_start(jpeg, source);
    const uint32_t width = jpeg->output_width, height = jpeg->output_height;
    const size_t stride = (size_t)width * RESIZE_PIXEL_BYTES;
    if (stride * height > capacity) {
        free(image);
        capacity = stride * height;
        image = malloc(capacity);
    }
    while (jpeg->output_scanline < height) {
        uint8_t *line = image + jpeg->output_scanline * stride;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    jpeg_finish_decompress(jpeg);
    struct view_box crop = view_box(view, &view_rules_imagenet, width, height);
    struct resize_box box = {crop.x, crop.y, crop.width,  crop.height,
                             width,  height, crop.mirror, RESIZE_TRIANGLE};
    bump_reset(bump);
    resize_plan(&resize, &box, SIDE, SIDE, bump);
    const uint32_t low = resize.x.low, columns = resize.x.high - low;
    resize_begin(&resize, low, columns, row);
    for (uint32_t count; (count = resize_want(&resize, rows));) {
        for (uint32_t i = 0; i < count; i++)
            memcpy(rows[i], image + (resize.row + i) * stride + low * RESIZE_PIXEL_BYTES,
                   (size_t)columns * RESIZE_PIXEL_BYTES);
        resize_give(&resize, count);
    }
}

static void whole(struct jpeg_decompress_struct *jpeg, const struct decode_source *source,
                  uint32_t eighths, uint8_t *row)
{
    jpeg_mem_src(jpeg, source->bytes, source->length);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_EXT_RGBX;
    jpeg->scale_num = eighths;
    jpeg->scale_denom = 8;
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height)
        jpeg_read_scanlines(jpeg, &row, 1);
    jpeg_abort_decompress(jpeg);
}

/* The last pixel, which needs the lengths of all blocks, or all pixels. Returns false if libjpeg
 * must decode the image. */
static bool own(struct baseline *baseline, struct bump *bump, const struct decode_source *source,
                bool all, uint32_t eighths, uint8_t *row)
{
    struct baseline_image image;

    if (baseline_open(baseline, source->bytes, source->length, &image) ||
        baseline_scale(baseline, eighths, &image))
        return false;
    const struct baseline_region last = {image.width - 1, image.height - 1, 1, 1};
    const struct baseline_region region =
        all ? (struct baseline_region){0, 0, image.width, image.height} : last;
    bump_reset(bump);
    void *memory = bump_alloc(bump, baseline_select(baseline, &region));
    if (!memory || baseline_start(baseline, memory))
        return false;
    for (uint32_t y = 0; y < region.height; y++)
        if (baseline_read(baseline, row))
            return false;
    return true;
}

struct workplace {
    struct baseline *baseline;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct bump bump;
    struct decoder decoders[VARIANTS];
    struct plugin_choice choices[VARIANTS];
    uint8_t *row;
};

static int prepare(struct workplace *place)
{
    place->jpeg.err = jpeg_std_error(&place->errors);
    jpeg_create_decompress(&place->jpeg);
    place->row = malloc((size_t)JPEG_MAX_DIMENSION * RESIZE_PIXEL_BYTES);
    place->baseline = baseline_create();
    if (!place->row || !place->baseline || bump_open(&place->bump, 4 << 20, SIZE_MAX))
        return -1;
    for (int i = OURS; i < VARIANTS; i++)
        if (plugin_choose("decoder", decoder_registry, variants[i], &place->choices[i]) ||
            decoder_open(&place->decoders[i], &place->choices[i]))
            return -1;
    return 0;
}

static void note_points(struct workplace *place, struct images *images)
{
    for (int i = 0; i < images->count; i++)
        images->hint_bytes[i] =
            decoder_make_hint(&place->decoders[OURS], &images->source[i], images->hints[i]);
}

static void run_own(struct workplace *place, const struct decode_source *source, bool all,
                    uint32_t eighths)
{
    if (own(place->baseline, &place->bump, source, all, eighths, place->row))
        return;
    if (all)
        whole(&place->jpeg, source, eighths, place->row);
    else
        huffman(&place->jpeg, source, NULL, true);
}

static int decode(struct workplace *place, const struct images *images, int variant, int i,
                  const struct view *view)
{
    struct decoder *decoder = &place->decoders[variant < OURS ? OURS : variant];
    struct decode_source source = images->source[i];
    uint8_t hint[DECODE_HINT_MAX];

    if (variant == ENTERED) {
        source.hint = images->hints[i];
        source.hint_bytes = images->hint_bytes[i];
    }
    source.wants_hint = variant == NOTING;
    const int code = decoder_decode(decoder, &source, view, place->row);
    if (source.wants_hint)
        decoder_make_hint(decoder, &source, hint);
    return code;
}

static struct view view_of(int round, int i)
{
    return (struct view){.kind = VIEW_TRAIN, .seed = random_hash(1, (uint64_t)round, (uint64_t)i)};
}

/* Decode images [from, to). Returns nanoseconds of CPU. */
static uint64_t take_turn(struct workplace *place, const struct images *images, int variant,
                          int round, int from, int to)
{
    const uint64_t start = clock_cpu_ns();

    for (int i = from; i < to; i++) {
        const struct decode_source *source = &images->source[i];
        const struct view view = view_of(round, i);
        if (variant == BOUND || variant == SCAN)
            huffman(&place->jpeg, source, &view, variant == SCAN);
        else if (variant == PLAIN)
            plain(&place->jpeg, &place->bump, source, &view, place->row);
        else if (variant >= WHOLE && variant <= QUARTER)
            whole(&place->jpeg, source, 8U >> (variant - WHOLE), place->row);
        else if (variant == OWN_SCAN)
            run_own(place, source, false, 8);
        else if (variant >= OWN_WHOLE && variant <= OWN_QUARTER)
            run_own(place, source, true, 8U >> (variant - OWN_WHOLE));
        else if (decode(place, images, variant, i, &view))
            fprintf(stderr, "%s\n", fail_reason());
    }
    return clock_cpu_ns() - start;
}

/* Nanoseconds of CPU per image. */
static void run_round(struct workplace *place, const struct images *images, int round,
                      double time[VARIANTS])
{
    uint64_t ns[VARIANTS] = {0};

    for (int from = 0; from < images->count; from += TURN) {
        const int to = from + TURN < images->count ? from + TURN : images->count;
        for (int variant = 0; variant < VARIANTS; variant++)
            ns[variant] += take_turn(place, images, variant, round, from, to);
    }
    for (int variant = 0; variant < VARIANTS; variant++)
        time[variant] = (double)ns[variant] / images->count;
}

/* ---- turns with other programs ---- */

/* As [x, y, width, height, mirror] of each image. */
static void print_boxes(struct workplace *place, const struct images *images, int round)
{
    for (int i = 0; i < images->count; i++) {
        const struct view view = view_of(round, i);
        jpeg_mem_src(&place->jpeg, images->source[i].bytes, images->source[i].length);
        jpeg_read_header(&place->jpeg, TRUE);
        const struct view_box box = view_box(&view, &view_rules_imagenet, place->jpeg.image_width,
                                             place->jpeg.image_height);
        jpeg_abort_decompress(&place->jpeg);
        printf("%s[%.0f, %.0f, %.0f, %.0f, %d]", i ? ", " : "[", box.x, box.y, box.width,
               box.height, box.mirror);
    }
    printf("]\n");
}

/* Of the upper left quarter of a row: by it other programs see that they show the same. */
static double mean_of_corner(const uint8_t *row)
{
    uint64_t sum = 0;

    for (int y = 0; y < SIDE / 2; y++)
        for (int x = 0; x < SIDE / 2 * 3; x++)
            sum += row[y * SIDE * 3 + x];
    return (double)sum / (SIDE / 2 * (SIDE / 2) * 3);
}

static int serve(struct workplace *place, const struct images *images)
{
    char name[64];
    int round, variant;

    while (scanf("%d %63[^\n]", &round, name) == 2) {
        for (variant = 0; variant < VARIANTS && strcmp(variants[variant], name); variant++)
            ;
        if (variant < VARIANTS) {
            const uint64_t ns = take_turn(place, images, variant, round, 0, images->count);
            printf("%.1f %.2f\n", (double)ns / images->count / 1e3, mean_of_corner(place->row));
        } else if (strcmp(name, "boxes") == 0) {
            print_boxes(place, images, round);
        } else {
            return fail(2, "'%s' is no variant", name);
        }
        fflush(stdout);
    }
    return 0;
}

static void claim(const char *name, double value, double goal)
{
    printf("claim %s %.2f x goal >=%g %s\n", name, value, goal, value >= goal ? "ok" : "short");
}

/* ---- two threads ---- */

/* Images to decode, or steps without memory. */
struct duty {
    struct thread thread;
    struct decoder decoder;
    const struct images *images; /* NULL: none */
    uint64_t seed, cpu_ns, waits;
    uint8_t row[SIDE * SIDE * 3];
};

static int spin(uint64_t seed)
{
    struct random random = random_start(seed);
    uint64_t sum = 0;

    for (int i = 0; i < 50000000; i++)
        sum += random_next(&random);
    return sum == 0;
}

static int work(void *opaque)
{
    struct duty *duty = opaque;
    const uint64_t start_ns = clock_cpu_ns();
    struct rusage usage;
    int code = duty->images ? 0 : spin(duty->seed);

    for (int i = 0; code == 0 && duty->images && i < duty->images->count; i++) {
        const struct view view = {.kind = VIEW_TRAIN,
                                  .seed = random_hash(2, duty->seed, (uint64_t)i)};
        code = decoder_decode(&duty->decoder, &duty->images->source[i], &view, duty->row);
    }
    duty->cpu_ns = clock_cpu_ns() - start_ns;
    getrusage(RUSAGE_THREAD, &usage);
    duty->waits = (uint64_t)usage.ru_nvcsw;
    return code;
}

/* Nanoseconds until `count` threads have done their duty each. */
static double run_together(struct duty *duties, int count, const struct images *images)
{
    const uint64_t start_ns = clock_now_ns();

    for (int i = 0; i < count; i++) {
        duties[i].images = images;
        if (thread_start(&duties[i].thread, "decode", work, &duties[i]))
            return 0;
    }
    for (int i = 0; i < count; i++)
        thread_join(&duties[i].thread);
    return (double)(clock_now_ns() - start_ns);
}

enum { DECODING, DECODING_CPU, SPINNING, RATIOS };

/* How many times as much two do as one, medians. Returns how often the two waited in all. */
static uint64_t compare_threads(struct duty *duties, const struct images *images, int rounds,
                                double medians[RATIOS])
{
    double ratios[RATIOS][ROUNDS_MAX];
    uint64_t waits = 0;

    for (int round = 0; round < rounds; round++) {
        duties[0].seed = duties[1].seed = (uint64_t)round; /* the same work */
        double one = run_together(duties, 1, images);
        const double cpu = (double)duties[0].cpu_ns;
        ratios[DECODING][round] = 2 * one / run_together(duties, 2, images);
        ratios[DECODING_CPU][round] = 4 * cpu / (double)(duties[0].cpu_ns + duties[1].cpu_ns);
        waits += duties[0].waits + duties[1].waits;
        one = run_together(duties, 1, NULL);
        ratios[SPINNING][round] = 2 * one / run_together(duties, 2, NULL);
    }
    for (int i = 0; i < RATIOS; i++)
        medians[i] = stats_summarise(ratios[i], (size_t)rounds).median;
    return waits;
}

static int report_threads(const struct workplace *place, const struct images *images, int rounds)
{
    static struct duty duties[2];
    double ratios[RATIOS];

    for (int i = 0; i < 2; i++)
        if (decoder_open(&duties[i].decoder, &place->choices[OURS]))
            return -1;
    const uint64_t waits = compare_threads(duties, images, rounds, ratios);
    printf("two threads waited %llu times; by the wall clock they did %.2f times what one does, "
           "without memory %.2f times\n",
           (unsigned long long)waits, ratios[DECODING], ratios[SPINNING]);
    claim("decode_two_threads", ratios[DECODING_CPU], 1.95);
    for (int i = 0; i < 2; i++)
        decoder_close(&duties[i].decoder);
    return 0;
}

static void report(const struct images *images, double time[ROUNDS_MAX][VARIANTS], int rounds)
{
    double median[VARIANTS], values[ROUNDS_MAX];
    const double mean_bytes = (double)images->bytes / images->count;

    printf("%d images, %.0f bytes on average; CPU time of one core, %d rounds\n", images->count,
           mean_bytes, rounds);
    printf("%-24s %10s %10s %8s %10s\n", "", "us/image", "images/s", "MB/s", "spread");
    for (int i = 0; i < VARIANTS; i++) {
        for (int round = 0; round < rounds; round++)
            values[round] = time[round][i];
        struct stats_summary summary = stats_summarise(values, (size_t)rounds);
        median[i] = summary.median;
        printf("%-24s %10.0f %10.0f %8.1f %9.1f%%\n", variants[i], median[i] / 1e3, 1e9 / median[i],
               mean_bytes * 1e3 / median[i],
               100 * (summary.maximum - summary.minimum) / summary.median);
    }
    printf("Huffman decoding is %.0f%% of decoding the whole image plainly\n",
           100 * median[SCAN] / median[PLAIN]);
    claim("decode_over_plain", median[PLAIN] / median[OURS], 1.5);
    claim("decode_own_entropy", median[SCAN] / median[OWN_SCAN], 1.75);
    claim("decode_own_whole", median[WHOLE] / median[OWN_WHOLE], 1.8);
    claim("decode_own_half", median[HALF] / median[OWN_HALF], 1.6);
    claim("decode_own_quarter", median[QUARTER] / median[OWN_QUARTER], 1.4);
    claim("decode_own_region", median[TURBO] / median[OURS], 1.6);
    claim("decode_entered", median[OURS] / median[ENTERED], 1.05);
    claim("decode_noting", median[OURS] / median[NOTING], 0.85);
    claim("decode_entered_region", median[TURBO] / median[ENTERED], 2.2);
    double share = 100 * median[BOUND] / median[TURBO];
    printf("claim decode_bound_share %.0f %% goal >=60 %s\n", share, share >= 60 ? "ok" : "short");
}

int main(int argc, char **argv)
{
    static struct images images;
    static struct workplace place;
    static double time[ROUNDS_MAX][VARIANTS];
    const char *folder = NULL, *write = NULL;
    int first = 0, rounds = 7, count = 150;
    bool serves = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0) {
            rounds = ROUNDS_MAX;
            count = IMAGES_MAX;
        } else if (strcmp(argv[i], "--round") == 0 && i + 1 < argc) {
            first = atoi(argv[++i]);
            rounds = 1;
        } else if (strcmp(argv[i], "--serve") == 0) {
            serves = true;
        } else if (strcmp(argv[i], "--write") == 0 && i + 1 < argc) {
            write = argv[++i];
        } else {
            folder = argv[i];
        }
    }
    if (folder ? load_folder(&images, folder) : make_images(&images, count, write))
        return give_up();
    if (prepare(&place))
        return give_up();
    note_points(&place, &images);
    if (serves)
        return serve(&place, &images) ? give_up() : 0;
    for (int round = 0; round < rounds; round++)
        run_round(&place, &images, first + round, time[round]);
    report(&images, time, rounds);
    return report_threads(&place, &images, rounds) ? give_up() : 0;
}
