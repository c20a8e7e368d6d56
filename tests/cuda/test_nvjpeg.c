/* SPDX-License-Identifier: Apache-2.0
 *
 * The nvjpeg decoder on an emulated device, with libjpeg-turbo in place of nvJPEG, against the jpeg
 * decoder: the same pixels and verdicts, for images one by one and many at a time. (nvJPEG itself
 * rounds and interpolates otherwise.) Built twice: plainly, and with ThreadSanitizer, which reports
 * accesses that no wait orders, between decode threads and streams.
 */
#include "tests/unit/decoding.h"
#include "tests/unit/fixture.h"
#include "tests/unit/unit.h"

#include "base/fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Those that stay on the device, then those that do not. */
static const char *const names[] = {
    "yuv420.jpg",    "yuv422.jpg",      "yuv444.jpg",
    "grayscale.jpg", "large.jpg",       "large420.jpg", /* on the device */
    "one_pixel.jpg", "progressive.jpg", "cmyk.jpg",
    "truncated.jpg", "palette.png",     "exif_rotated.jpg", /* by as=dali alone */
};
enum { COUNT = sizeof names / sizeof *names, ON_DEVICE = 6, MOST = 64, SEED = 5 };

#define LIKE ",scale=none"
#define SMALL ",memory=4MiB"

static struct decode_source sources[COUNT];
/* As the jpeg decoder does it. */
struct answer {
    int code;
    uint8_t *row;
};

static void answers_of(const char *options, struct answer *answers)
{
    struct bench bench;
    char text[128];

    snprintf(text, sizeof text, "jpeg:%s" LIKE, options);
    start(&bench, text);
    for (int i = 0; i < COUNT; i++) {
        answers[i].code = decode(&bench, &sources[i], SEED + (uint64_t)i);
        answers[i].row = malloc(bench.decoder.traits.row_bytes);
        assert_non_null(answers[i].row);
        memcpy(answers[i].row, bench.row, bench.decoder.traits.row_bytes);
    }
    stop(&bench);
}

static void free_answers(struct answer *answers)
{
    for (int i = 0; i < COUNT; i++)
        free(answers[i].row);
}

static void same(const struct answer *answer, int code, const uint8_t *row, size_t bytes, int which)
{
    if (code != answer->code)
        fail_msg("%s: %d instead of %d: %s", names[which], code, answer->code, fail_reason());
    if (code >= 0 && memcmp(row, answer->row, bytes) != 0)
        fail_msg("%s: other pixels", names[which]);
}

/* Memory as the cuda backend's batches have it, which copies do not wait for. */
static void *pinned(size_t bytes)
{
    void *module = dlopen(getenv("IOBENCH_NVJPEG_MODULE"), RTLD_NOW | RTLD_NOLOAD);
    void *(*pin)(uint64_t bytes) = NULL;

    assert_non_null(module);
    void *symbol = dlsym(module, "runtime_pin");
    memcpy(&pin, &symbol, sizeof pin);
    return pin(bytes);
}

static void unpin(void *memory)
{
    void (*release)(void *) = NULL;
    void *symbol =
        dlsym(dlopen(getenv("IOBENCH_NVJPEG_MODULE"), RTLD_NOW | RTLD_NOLOAD), "runtime_unpin");

    memcpy(&release, &symbol, sizeof release);
    release(memory);
}

/* Many at a time: `rounds` of all images, finished when the decoder wants to, and at the end. */
static void decode_rounds(struct bench *bench, int rounds, const struct answer *answers)
{
    const size_t bytes = bench->decoder.traits.row_bytes;
    const int most = (int)bench->decoder.traits.pending;
    uint8_t *rows = pinned(MOST * bytes);
    int which[MOST], count = 0;

    assert_non_null(rows);
    for (int i = 0; i < rounds * COUNT; i++) {
        const struct view view = {.kind = VIEW_TRAIN, .seed = SEED + (uint64_t)(i % COUNT)};
        uint8_t *row = rows + (size_t)count * bytes;
        int code = decoder_begin(&bench->decoder, &sources[i % COUNT], &view, row);
        if (code == DECODE_PENDING)
            which[count++] = i % COUNT;
        else if (code != DECODE_FULL)
            same(&answers[i % COUNT], code, row, bytes, i % COUNT);
        if (code != DECODE_FULL && i + 1 < rounds * COUNT && count < most)
            continue;
        for (int k = 0; k < count; k++) {
            const int done = decoder_finish(&bench->decoder, (uint32_t)k);
            same(&answers[which[k]], done, rows + (size_t)k * bytes, bytes, which[k]);
        }
        count = 0;
        i -= code == DECODE_FULL;
    }
    assert_int_equal(bench->decoder.figures.images, rounds * COUNT);
    unpin(rows);
}

static void decode_many(const char *options, const char *own, int rounds,
                        struct decode_figures *figures)
{
    struct bench bench;
    struct answer answers[COUNT];
    char text[160];

    snprintf(text, sizeof text, "nvjpeg:%s" SMALL "%s", options, own);
    start(&bench, text);
    answers_of(options, answers);
    decode_rounds(&bench, rounds, answers);
    *figures = bench.decoder.figures;
    free_answers(answers);
    stop(&bench);
}

static void pixels_and_verdicts_are_those_of_the_cpu(void **unused)
{
    struct decode_figures figures;

    decode_many("size=48", "", 3, &figures);
    assert_int_equal(figures.on_cpu, 3 * (COUNT - ON_DEVICE - 1)); /* EXIF is ignored */
    assert_int_equal(figures.failed, 3);
    assert_int_equal(figures.truncated, 3);
    assert_int_equal(figures.progressive, 3);
    assert_int_equal(figures.cmyk, 3);
    assert_true(figures.grayscale >= 3);
    decode_many("size=224", "", 1, &figures);
    decode_many("size=33,view=evaluate", "", 1, &figures);
    decode_many("size=48,view=whole,damaged=decode", "", 1, &figures);
    assert_int_equal(figures.failed, 0);
    decode_many("size=48,as=tensorflow", "", 1, &figures);
    decode_many("size=48,as=ffcv,min-area=0.4,crop=0.7", "", 1, &figures);
    decode_many("size=48,as=dali", "", 2, &figures);
    assert_int_equal(figures.on_cpu, 2 * (COUNT - ON_DEVICE));
    decode_many("size=48,max-pixels=20000", "", 1, &figures); /* large ones are refused */
    assert_true(figures.failed > 1);
}

static void batches_end_where_memory_does(void **unused)
{
    struct decode_figures figures;

    decode_many("size=48", ",images=1", 1, &figures);
    assert_int_equal(figures.on_cpu, COUNT - ON_DEVICE - 1);
    decode_many("size=48", ",images=5", 3, &figures);
    assert_int_equal(figures.on_cpu, 3 * (COUNT - ON_DEVICE - 1));
    decode_many("size=48", ",memory=1MiB", 3, &figures); /* files have an eighth */
    assert_true(figures.on_cpu >= 3 * (COUNT - ON_DEVICE - 1));
}

static void without_engines_the_sms_decode(void **unused)
{
    struct decode_figures figures;
    struct plugin_choice choice;
    struct decoder decoder;

    setenv("IOBENCH_EMULATED_NVJPEG", "no-engines", 1);
    decode_many("size=48", "", 1, &figures);
    decode_many("size=48", ",engine=gpu", 1, &figures);
    assert_int_equal(plugin_choose("decoder", decoder_registry, "nvjpeg:engine=hardware", &choice),
                     0);
    assert_refused(decoder_open(&decoder, &choice), -ENODEV, "no JPEG engines");
    assert_reason("engine=gpu");
    decoder_close(&decoder);
    plugin_release(&choice);
    unsetenv("IOBENCH_EMULATED_NVJPEG");
}

/* Whichever allocation fails: the reason is told, and nothing is left (the emulated device looks).
 */
static void memory_may_end(void **unused)
{
    struct plugin_choice choice;
    struct decoder decoder;
    char most[2] = "0";
    int code;

    assert_int_equal(plugin_choose("decoder", decoder_registry, "nvjpeg:size=48" SMALL, &choice),
                     0);
    do {
        setenv("IOBENCH_EMULATED_PIECES", most, 1);
        code = decoder_open(&decoder, &choice);
        assert_true(code == 0 || (code == -ENOMEM && strstr(fail_reason(), "out of memory")));
        decoder_close(&decoder);
    } while (code && most[0]++ < '9');
    assert_int_equal(most[0], '7'); /* for images, rows, tables on both sides, files, marks twice */
    unsetenv("IOBENCH_EMULATED_PIECES");
    plugin_release(&choice);
}

/* Whatever nvJPEG does not decode, the CPU does: nothing is wrong, and it is counted. */
static void what_fails_is_left_to_the_cpu(void **unused)
{
    struct decode_figures figures;

    setenv("IOBENCH_EMULATED_NVJPEG", "skips", 1);
    decode_many("size=48", ",images=4", 3, &figures);
    assert_true(figures.on_cpu > 3 * (COUNT - ON_DEVICE - 1));
    setenv("IOBENCH_EMULATED_NVJPEG", "late", 1);
    decode_many("size=48", ",images=4", 3, &figures);
    assert_true(figures.on_cpu > 3 * (COUNT - ON_DEVICE - 1));
    setenv("IOBENCH_EMULATED_NVJPEG", "fails", 1);
    decode_many("size=48", ",images=4", 4, &figures);
    assert_true(figures.on_cpu > 4 * (COUNT - ON_DEVICE - 1));
    assert_true(figures.on_cpu < 4 * COUNT);
    setenv("IOBENCH_EMULATED_NVJPEG", "memory", 1);
    decode_many("size=48", "", 2, &figures);
    assert_int_equal(figures.on_cpu, 2 * COUNT);
    unsetenv("IOBENCH_EMULATED_NVJPEG");
}

/* Headers and end are right, the data between are not: nvJPEG refuses the batch, the CPU judges
 * each. */
static void damage_within_fails_its_image_alone(void **unused)
{
    struct decode_source whole = sources[5], hurt = whole;
    uint8_t *bytes = malloc(whole.length);
    uint32_t refused = 0;
    struct bench cpu, device;
    uint8_t rows[2][48 * 48 * 3];

    assert_non_null(bytes);
    hurt.bytes = bytes;
    start(&cpu, "jpeg:size=48" LIKE);
    start(&device, "nvjpeg:size=48" SMALL);
    for (uint64_t i = 0; i < 40; i++) {
        const struct view view = {.kind = VIEW_WHOLE, .seed = i};
        memcpy(bytes, whole.bytes, whole.length);
        memset(bytes + whole.length / 2 + i * 7, i % 2 ? 0xff : 0, 6);
        assert_int_equal(decoder_begin(&device.decoder, &hurt, &view, rows[0]), DECODE_PENDING);
        assert_int_equal(decoder_begin(&device.decoder, &whole, &view, rows[1]), DECODE_PENDING);
        int code = decoder_finish(&device.decoder, 0);
        assert_int_equal(code, decoder_decode(&cpu.decoder, &hurt, &view, cpu.row));
        refused += code == -EBADMSG;
        if (code == 0)
            assert_memory_equal(rows[0], cpu.row, sizeof rows[0]);
        assert_int_equal(decoder_finish(&device.decoder, 1), 0);
        assert_int_equal(decoder_decode(&cpu.decoder, &whole, &view, cpu.row), 0);
        assert_memory_equal(rows[1], cpu.row, sizeof rows[1]);
    }
    assert_true(refused > 5);
    assert_int_equal(device.decoder.figures.failed, refused);
    stop(&cpu);
    stop(&device);
    free(bytes);
}

static void boxes_are_shown(void **unused)
{
    struct bench cpu, device;

    start(&cpu, "jpeg:size=48" LIKE);
    start(&device, "nvjpeg:size=48" SMALL);
    for (uint64_t i = 0; i < COUNT; i++) {
        if (decode(&cpu, &sources[i], i) < 0)
            continue;
        assert_int_equal(decode(&device, &sources[i], i), 0);
        const struct view_shown *a = cpu.decoder.traits.shown;
        const struct view_shown *b = device.decoder.traits.shown;
        assert_int_equal(a->width, b->width);
        assert_int_equal(a->height, b->height);
        assert_true(a->box.x == b->box.x && a->box.y == b->box.y && a->box.width == b->box.width &&
                    a->box.height == b->box.height && a->box.mirror == b->box.mirror);
    }
    stop(&cpu);
    stop(&device);
}

struct one_thread {
    struct bench bench;
    const struct answer *answers;
};

static void *decode_alone(void *argument)
{
    struct one_thread *thread = argument;

    decode_rounds(&thread->bench, 4, thread->answers);
    return NULL;
}

/* As in a run: opened and closed by one thread. */
static void threads_share_nothing(void **unused)
{
    enum { THREADS = 4 };
    struct one_thread threads[THREADS];
    pthread_t handles[THREADS];
    struct answer answers[COUNT];

    answers_of("size=48", answers);
    for (int i = 0; i < THREADS; i++) {
        threads[i].answers = answers;
        start(&threads[i].bench, "nvjpeg:size=48,images=7" SMALL);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&handles[i], NULL, decode_alone, &threads[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(handles[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        stop(&threads[i].bench);
    free_answers(answers);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_and_verdicts_are_those_of_the_cpu),
        cmocka_unit_test(batches_end_where_memory_does),
        cmocka_unit_test(without_engines_the_sms_decode),
        cmocka_unit_test(memory_may_end),
        cmocka_unit_test(what_fails_is_left_to_the_cpu),
        cmocka_unit_test(damage_within_fails_its_image_alone),
        cmocka_unit_test(boxes_are_shown),
        cmocka_unit_test(threads_share_nothing),
    };

#ifdef MODULE              /* built with ThreadSanitizer */
    char module[PATH_MAX]; /* the stand-in is found next to it, by an absolute path */
    if (realpath(MODULE, module))
        setenv("IOBENCH_NVJPEG_MODULE", module, 1);
    cmocka_set_test_filter("threads_share_nothing");
#endif
    for (int i = 0; i < COUNT; i++)
        sources[i] = load(names[i]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < COUNT; i++)
        drop(&sources[i]);
    return failed;
}
