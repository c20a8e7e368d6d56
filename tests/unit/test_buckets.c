/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets cover an arena of any size once, in order; the last one, which nothing hides, is small.
 */
#include "tests/unit/unit.h"
#include "trainer/buckets.h"

static const uint64_t resnet50_floats = 25557032;

/* Send everything, as if `step` floats became final at a time. Return the size of the last bucket.
 */
static uint64_t send_all(struct buckets buckets, uint64_t step)
{
    uint64_t sent = 0, start = 0, count = 0;

    for (uint64_t done = 0; done < buckets.floats;) {
        done = done + step < buckets.floats ? done + step : buckets.floats;
        while (buckets_next(&buckets, done, &start, &count)) {
            assert_true(start == sent && start % BUCKET_ALIGNMENT_FLOATS == 0);
            sent += count;
            assert_true(sent <= done);
        }
    }
    assert_true(sent == buckets.floats && buckets.started == buckets.count);
    return count;
}

static void arenas_are_covered_once(void **unused)
{
    static const uint64_t sizes[] = {1, 127, 128, 129, 1000, 2048, 5001, 61706, 25557032};

    (void)unused;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t wanted = 1; wanted <= 40; wanted++) {
            send_all(buckets_of(sizes[i], wanted), sizes[i] / 7 + 1);
            send_all(buckets_of_backward(sizes[i], wanted), sizes[i] / 7 + 1);
        }
}

static void the_last_one_is_small(void **unused)
{
    (void)unused;
    assert_true(send_all(buckets_of(resnet50_floats, 4), 4096) > resnet50_floats / 4 - 512);
    for (uint32_t wanted = 2; wanted <= 40; wanted++)
        assert_true(send_all(buckets_of_backward(resnet50_floats, wanted), 4096) <
                    resnet50_floats / BUCKET_LAST_SHARE + 8192);
    assert_true(send_all(buckets_of_backward(resnet50_floats, 1), 4096) == resnet50_floats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_are_covered_once),
        cmocka_unit_test(the_last_one_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
