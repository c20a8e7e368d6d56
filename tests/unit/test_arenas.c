/* SPDX-License-Identifier: Apache-2.0
 * Record memory: extents hold their bytes and never overlap, none is where a copy from its source
 * is slow, and all memory comes back. */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "pipeline/loader/blocks.h"

#include <string.h>

enum { EXTENTS = 64, BYTES = 8 << 20, BYTES_MOST = 40000 };

static const struct numa nodes = {.count = 1};

struct extent_of {
    uint8_t *memory;
    uint32_t bytes;
};

static void check(const struct extent_of *extent, uint8_t mark)
{
    for (uint32_t i = 0; i < extent->bytes; i++)
        assert_int_equal(extent->memory[i], mark);
}

static bool is_slow(const void *target, uint64_t source)
{
    const uint64_t behind = ((uintptr_t)target - source) & 4095;

    return behind >= 1 && behind <= 31;
}

static void no_copy_is_slow(void **unused)
{
    static const uint32_t granules[] = {64, 4096};
    static const uint32_t io_threads[] = {1, 3};
    struct random random = random_start(1);

    for (int variant = 0; variant < 4; variant++) {
        struct extent_of extents[EXTENTS] = {{0}};
        struct arenas arenas;
        uint32_t moved = 0, region;
        assert_int_equal(arenas_create(&arenas, BYTES, BYTES, granules[variant % 2],
                                       io_threads[variant / 2], &nodes),
                         0);
        for (uint32_t turn = 0; turn < 20000; turn++) {
            const uint32_t at = (uint32_t)random_below(&random, EXTENTS);
            struct extent_of *extent = &extents[at];
            if (extent->memory) {
                if (turn % 8 == 0)
                    check(extent, (uint8_t)at);
                arenas_release(&arenas, extent->memory);
            }
            /* Whole pages before a source that is near the end of one: most would be slow. */
            const uint64_t source = 4096 * 77 - random_below(&random, 64);
            extent->bytes =
                turn % 3 ? 4096 * (1 + turn % 8) : 1 + (uint32_t)random_below(&random, BYTES_MOST);
            extent->memory = arenas_acquire(&arenas, source, extent->bytes, &region);
            assert_non_null(extent->memory);
            assert_false(is_slow(extent->memory, source));
            const struct iovec *own = &arenas.regions[region];
            assert_true(extent->memory >= (uint8_t *)own->iov_base);
            assert_true(extent->memory + extent->bytes <= (uint8_t *)own->iov_base + own->iov_len);
            moved += (uintptr_t)extent->memory % 64 != 0;
            memset(extent->memory, (uint8_t)at, extent->bytes);
        }
        assert_true(moved > 100 ||
                    variant % 2 == 0); /* extents are on a page with the larger granule */
        for (uint32_t at = 0; at < EXTENTS; at++) {
            check(&extents[at], (uint8_t)at);
            arenas_release(&arenas, extents[at].memory);
        }
        /* All of a heap is free again, in one piece; then there is no room to move. */
        void *whole = arenas_acquire(&arenas, 4095, arenas.regions[0].iov_len, &region);
        assert_ptr_equal(whole, arenas.regions[0].iov_base);
        arenas_destroy(&arenas);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_copy_is_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
