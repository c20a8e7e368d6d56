/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of engines (trainer/cuda/dnn_trial.c): every kind of plan passes it, and none that
 * leaves out, shifts or repeats anything. Plans are cuDNN's on a device, and what stands in for
 * them on the host; their results are spoilt afterwards.
 */
#include "tests/cuda/place.h"

#include "trainer/cuda/dnn.h"

#include <errno.h>

static struct dnn *dnn;

static const struct kernel_window three = {.images = 6,
                                           .in_channels = 16,
                                           .in_height = 9,
                                           .in_width = 8,
                                           .out_channels = 24,
                                           .out_height = 9,
                                           .out_width = 8,
                                           .height = 3,
                                           .width = 3,
                                           .stride = 1,
                                           .pad_top = 1,
                                           .pad_left = 1,
                                           .groups = 1};
static const struct kernel_window strided = {.images = 5,
                                             .in_channels = 8,
                                             .in_height = 9,
                                             .in_width = 9,
                                             .out_channels = 40,
                                             .out_height = 5,
                                             .out_width = 5,
                                             .height = 3,
                                             .width = 3,
                                             .stride = 2,
                                             .pad_top = 1,
                                             .pad_left = 1,
                                             .groups = 1};
static const struct kernel_window one = {.images = 6,
                                         .in_channels = 16,
                                         .in_height = 8,
                                         .in_width = 8,
                                         .out_channels = 32,
                                         .out_height = 8,
                                         .out_width = 8,
                                         .height = 1,
                                         .width = 1,
                                         .stride = 1,
                                         .groups = 1};

static const struct dnn_shape shapes[] = {
    {.kind = DNN_FORWARD, .type = DEVICE_FP32, .window = strided},
    {.kind = DNN_FORWARD, .type = DEVICE_BF16, .window = three},
    {.kind = DNN_FORWARD, .type = DEVICE_FP16, .window = three},
    {.kind = DNN_FORWARD,
     .type = DEVICE_FP16,
     .window = three,
     .fusion = DNN_SCALED | DNN_BIASED | DNN_ADDED | DNN_RECTIFIED},
    {.kind = DNN_FORWARD, .type = DEVICE_FP32, .window = one, .fusion = DNN_BIASED | DNN_RECTIFIED},
    {.kind = DNN_FORWARD, .type = DEVICE_FP16, .window = three, .fusion = DNN_STATISTICS},
    {.kind = DNN_FORWARD,
     .type = DEVICE_FP16,
     .window = three,
     .fusion = DNN_PROLOGUE | DNN_STATISTICS},
    {.kind = DNN_FORWARD,
     .type = DEVICE_FP16,
     .window = one,
     .fusion = DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED},
    {.kind = DNN_FORWARD,
     .type = DEVICE_FP16,
     .window = one,
     .fusion = DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED | DNN_DUAL},
    {.kind = DNN_DATA, .type = DEVICE_FP32, .window = strided},
    {.kind = DNN_DATA, .type = DEVICE_FP16, .window = three},
    {.kind = DNN_DATA, .type = DEVICE_FP16, .window = three, .fusion = DNN_NORM},
    {.kind = DNN_DATA, .type = DEVICE_FP16, .window = one, .fusion = DNN_NORM | DNN_ADDED},
    {.kind = DNN_DATA,
     .type = DEVICE_FP16,
     .window = one,
     .fusion = DNN_NORM | DNN_ADDED | DNN_SUMMED},
    {.kind = DNN_DATA,
     .type = DEVICE_FP16,
     .window = one,
     .fusion = DNN_NORM | DNN_ADDED | DNN_SUMMED | DNN_DUAL},
    {.kind = DNN_WEIGHT, .type = DEVICE_FP32, .window = strided},
    {.kind = DNN_WEIGHT, .type = DEVICE_FP16, .window = three},
    {.kind = DNN_WEIGHT, .type = DEVICE_FP16, .window = three, .fusion = DNN_PROLOGUE},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* What a candidate does with a tensor that a right plan wrote. */
enum spoil {
    RIGHT,
    NOTHING,    /* writes nothing at all */
    HOLE,       /* leaves one element in the middle out */
    LAST_IMAGE, /* 0 in the last eighth */
    LARGER,     /* by 1/8 */
    REPEATED,   /* the second half is the first */
    FAILS,
    SPOILS,
    CHANGES = SPOILS, /* the last bit of an element, every second time */
};

struct candidate {
    const struct dnn_shape *shape;
    const struct dnn_plan *plan;
    enum dnn_tensor which;
    const enum spoil *spoils; /* of each candidate */
    bool repeats;
};

static double get(const struct dnn_shape *shape, enum dnn_tensor which, const uint8_t *bytes,
                  uint64_t i)
{
    uint16_t bits;
    float value;

    memcpy(&bits, bytes + 2 * i, 2);
    if (dnn_type(shape, which) != DEVICE_FP32)
        return (double)place_value(shape->type, bits);
    memcpy(&value, bytes + 4 * i, 4);
    return (double)value;
}

static void set(const struct dnn_shape *shape, enum dnn_tensor which, uint8_t *bytes, uint64_t i,
                double value)
{
    const float rounded = place_round(shape->type, (float)value), wide = (float)value;
    const uint16_t bits = place_bits(shape->type, rounded);

    if (dnn_type(shape, which) == DEVICE_FP32)
        memcpy(bytes + 4 * i, &wide, 4);
    else
        memcpy(bytes + 2 * i, &bits, 2);
}

static void spoil(const struct candidate *candidate, enum spoil how, void *memory)
{
    const struct dnn_shape *shape = candidate->shape;
    const enum dnn_tensor which = candidate->which;
    const uint64_t count = dnn_count(shape, which), bytes = dnn_tensor_bytes(shape, which);
    uint8_t *host = malloc(bytes);

    assert_non_null(host);
    fetch_bytes(host, memory, bytes);
    if (how == HOLE)
        memset(host + count / 2 * (bytes / count), 0xff, bytes / count);
    static uint32_t runs;
    if (how == CHANGES)
        host[0] ^= runs++ & 1; /* little endian */
    for (uint64_t i = 0; i < count; i++)
        if (how == LARGER || (how == LAST_IMAGE && i >= count - count / 8) ||
            (how == REPEATED && i >= count / 2))
            set(shape, which, host, i,
                how == LARGER       ? get(shape, which, host, i) * 1.125
                : how == LAST_IMAGE ? 0
                                    : get(shape, which, host, i - count / 2));
    must(runtime_copy(memory, host, bytes, place_runtime.stream));
    must(runtime_wait(place_runtime.stream));
    free(host);
}

static int start(const void *context, uint32_t which, const struct dnn_tensors *tensors)
{
    const struct candidate *candidate = context;
    const enum spoil how = candidate->spoils[which];

    if (how == NOTHING)
        return 0;
    if (how == FAILS)
        return fail(EIO, "this one fails");
    int code = dnn_run(dnn, candidate->plan, tensors);
    if (code == 0 && how != RIGHT)
        spoil(candidate, how, tensors->at[candidate->which]);
    return code;
}

static int choose(const struct candidate *candidate, uint32_t count, uint32_t *chosen,
                  char wrong[DNN_WRONG_BYTES])
{
    const struct dnn_candidates candidates = {start, candidate, count, false, candidate->repeats};
    struct dnn_trial trial;
    double milliseconds = 0;

    must(dnn_trial_open(&trial, &place_runtime, candidate->shape,
                        candidate->plan->workspace_bytes + 1));
    int code = dnn_trial_choose(&trial, &candidates, chosen, &milliseconds, wrong);
    dnn_trial_close(&trial);
    return code;
}

static void try_shape(const struct dnn_shape *shape)
{
    char wrong[DNN_WRONG_BYTES];
    uint32_t chosen;
    int code;
    struct candidate candidate = {.shape = shape, .plan = dnn_find(dnn, shape, &code)};

    if (!candidate.plan && code == -ENOTSUP)
        return;
    must(code);
    for (enum dnn_tensor i = 0; i < DNN_TENSORS; i++) {
        candidate.which = i;
        if (!dnn_takes(shape, i) || !dnn_writes(shape, i))
            continue;
        for (enum spoil how = RIGHT; how < SPOILS; how++) {
            candidate.spoils = &how;
            code = choose(&candidate, 1, &chosen, wrong);
            if (how == RIGHT ? code != 0 || wrong[0] : code != -ENOTSUP || !wrong[0])
                fail_msg("shape %d, tensor %d spoilt by %d: %d: %s", (int)(shape - shapes), (int)i,
                         (int)how, code, wrong);
        }
    }
}

/* Sums by atomic operations: right, but with other bits each time. */
static void engines_that_do_not_repeat_are_left_out(void **unused)
{
    static const enum spoil changes[] = {CHANGES, RIGHT};
    const struct dnn_shape shape = {.kind = DNN_FORWARD, .type = DEVICE_FP16, .window = three};
    struct candidate candidate = {
        .shape = &shape, .which = DNN_OUTPUT, .spoils = changes, .repeats = true};
    char wrong[DNN_WRONG_BYTES];
    uint32_t chosen;
    int code;

    candidate.plan = dnn_find(dnn, &shape, &code);
    assert_non_null(candidate.plan);
    assert_int_equal(choose(&candidate, 1, &chosen, wrong), -ENOTSUP);
    assert_string_equal(wrong, "");
    assert_int_equal(choose(&candidate, 2, &chosen, wrong), 0);
    assert_int_equal(chosen, 1);
    candidate.repeats = false;
    assert_int_equal(choose(&candidate, 1, &chosen, wrong), 0);
}

static void wrong_engines_are_found(void **unused)
{
    for (int i = 0; i < SHAPES; i++)
        try_shape(&shapes[i]);
}

/* One image, or one pixel of the filter, is missing in each sum, or the padding is: as an engine
 * does that computes something else for every element. */
static void sums_without_a_part_are_found(void **unused)
{
    for (int i = 0; i < 3; i++) {
        const struct dnn_shape shape = {
            .kind = i == 0 ? DNN_WEIGHT : DNN_FORWARD, .type = DEVICE_FP16, .window = three};
        struct dnn_shape other = shape;
        const enum spoil how = RIGHT;
        char wrong[DNN_WRONG_BYTES];
        uint32_t chosen;
        int code;
        if (i == 0)
            other.window.images--;
        else if (i == 1)
            other.window.pad_left = 0;
        else
            other.window.height--;
        const struct candidate candidate = {
            .shape = &shape, .plan = dnn_find(dnn, &other, &code), .spoils = &how};
        if (!candidate.plan)
            continue;
        assert_int_equal(choose(&candidate, 1, &chosen, wrong), -ENOTSUP);
        assert_non_null(strstr(wrong, "instead of"));
    }
}

/* Whatever is faster; nothing is the fastest, and the one before it computed the right numbers. */
static void a_right_one_is_chosen(void **unused)
{
    static const enum spoil spoils[] = {HOLE, FAILS, LARGER, NOTHING, RIGHT};
    char wrong[DNN_WRONG_BYTES];
    uint32_t chosen = 0;
    int code;
    const struct candidate candidate = {.shape = &shapes[2],
                                        .plan = dnn_find(dnn, &shapes[2], &code),
                                        .which = DNN_OUTPUT,
                                        .spoils = spoils};

    must(code);
    must(choose(&candidate, sizeof spoils / sizeof *spoils, &chosen, wrong));
    assert_int_equal(chosen, 4);
}

/* The integers of INT8, their factors and roundings: by the plain kernel. */
static int start_int8(const void *context, uint32_t which, const struct dnn_tensors *tensors)
{
    const struct dnn_shape *shape = context;
    const struct device_int8 with = {.scale = tensors->at[DNN_SCALE],
                                     .bias = tensors->at[DNN_BIAS],
                                     .other = tensors->at[DNN_OTHER],
                                     .last = tensors->at[DNN_LAST],
                                     .relu = which != 1,
                                     .to_int8 = true,
                                     .type = shape->type};

    return device_convolution_int8(&shape->window, &with, tensors->at[DNN_INPUT],
                                   tensors->at[DNN_WEIGHTS], tensors->at[DNN_OUTPUT],
                                   place_runtime.stream);
}

static int start_int8_unrectified(const void *context, uint32_t which,
                                  const struct dnn_tensors *tensors)
{
    return start_int8(context, which + 1, tensors);
}

static void int8_is_checked(void **unused)
{
    const struct dnn_shape shape = {.kind = DNN_FORWARD,
                                    .type = DEVICE_FP16,
                                    .int8 = true,
                                    .int8_output = true,
                                    .window = three,
                                    .fusion = DNN_SCALED | DNN_BIASED | DNN_ADDED | DNN_RECTIFIED |
                                              DNN_RESCALED};
    const struct dnn_candidates right = {start_int8, &shape, 1, false, true};
    const struct dnn_candidates unrectified = {start_int8_unrectified, &shape, 1, false, true};
    char wrong[DNN_WRONG_BYTES];
    struct dnn_trial trial;
    double milliseconds;
    uint32_t chosen;

    must(dnn_trial_open(&trial, &place_runtime, &shape, 16));
    if (dnn_trial_choose(&trial, &right, &chosen, &milliseconds, wrong))
        fail_msg("%s", wrong);
    assert_int_equal(dnn_trial_choose(&trial, &unrectified, &chosen, &milliseconds, wrong),
                     -ENOTSUP);
    dnn_trial_close(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_engines_are_found),
        cmocka_unit_test(engines_that_do_not_repeat_are_left_out),
        cmocka_unit_test(sums_without_a_part_are_found),
        cmocka_unit_test(a_right_one_is_chosen),
        cmocka_unit_test(int8_is_checked),
    };

    if (runtime_usable()) {
        printf("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&place_runtime, 0, 0));
    must(dnn_open(&dnn, &(struct dnn_config){.runtime = &place_runtime, .tournament = 1}));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dnn_close(dnn);
    runtime_close(&place_runtime);
    return failed;
}
