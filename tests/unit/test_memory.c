/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/heap.h"
#include "base/memory.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jpeglib.h>

enum { EXTENTS = 400, ROUNDS = 200000, HUGE_BYTES = 2 << 20 };

/* Random allocations and frees; each extent is filled with its own pattern, which must be intact
 * when freed: extents never overlap. At the end the heap is whole again. */
static void extents_never_overlap_and_merge_again(void **unused)
{
    struct heap *heap = heap_create(8 << 20, 8 << 20, 512);
    struct random random = random_start(7);
    struct {
        uint8_t *bytes;
        uint64_t length;
    } extents[EXTENTS] = {0};

    assert_non_null(heap);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t i = random_below(&random, EXTENTS);
        uint8_t mark = (uint8_t)i;
        if (extents[i].bytes) {
            assert_int_equal(extents[i].bytes[0], mark);
            assert_int_equal(extents[i].bytes[extents[i].length - 1], mark);
            heap_free(heap, extents[i].bytes);
            extents[i].bytes = NULL;
            continue;
        }
        extents[i].length = 1 + random_below(&random, random_below(&random, 16) ? 30000 : 900000);
        extents[i].bytes = heap_alloc(heap, extents[i].length);
        if (extents[i].bytes) {
            assert_int_equal((uintptr_t)extents[i].bytes % 512, 0);
            extents[i].bytes[0] = mark;
            extents[i].bytes[extents[i].length - 1] = mark;
        }
    }
    for (int i = 0; i < EXTENTS; i++)
        if (extents[i].bytes)
            heap_free(heap, extents[i].bytes);
    assert_int_equal(heap_used_bytes(heap), 0);
    void *whole = heap_alloc(heap, heap_bytes(heap));
    assert_non_null(whole);
    assert_null(heap_alloc(heap, 1));
    assert_int_equal(heap_peak_bytes(heap), heap_bytes(heap));
    heap_free(heap, whole);
    heap_destroy(heap);
}

/* The last one first: it is in the CPU's cache. */
static void memory_of_one_size_is_used_again_at_once(void **unused)
{
    struct heap *heap = heap_create(2 << 20, 0, 64);
    void *extents[3];

    for (int i = 0; i < 3; i++)
        extents[i] = heap_alloc(heap, 5000);
    for (int i = 0; i < 3; i++)
        heap_free(heap, extents[i]);
    assert_int_equal(heap_used_bytes(heap), 0);
    assert_ptr_not_equal(heap_alloc(heap, 6000), extents[2]);
    for (int i = 3; i-- > 0;)
        assert_ptr_equal(heap_alloc(heap, 5000), extents[i]);
    heap_reset(heap);
    assert_ptr_equal(heap_alloc(heap, heap_bytes(heap)), heap_base(heap));
    heap_destroy(heap);
}

/* Whatever its size: the loader counts on it when a read must be repeated. */
static void what_was_freed_can_be_allocated_again(void **unused)
{
    struct heap *heap = heap_create(2 << 20, 0, 64);
    const uint64_t granules = heap_bytes(heap) / 64;

    for (uint64_t count = 1; count < granules; count += 1 + count / 7) {
        void *extent = heap_alloc(heap, count * 64);
        assert_non_null(extent);
        while (heap_alloc(heap, 64)) /* all else is taken */
            ;
        heap_free(heap, extent);
        assert_ptr_equal(heap_alloc(heap, count * 64), extent);
        heap_reset(heap);
    }
    heap_destroy(heap);
}

/* Page faults stay off the clock, and memory that a small set cannot fill is not zeroed for it. */
static void what_will_be_used_is_touched(void **unused)
{
    const uint64_t bytes = 8 << 20, used = 4 << 20, page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct heap *heap = heap_create(bytes, used, 512);
    unsigned char resident[(8 << 20) / 4096];
    uint64_t count = 0;

    assert_non_null(heap);
    assert_int_equal(mincore(heap_base(heap), bytes, resident), 0);
    for (uint64_t i = 0; i < bytes / page_bytes; i++)
        count += resident[i] & 1;
    assert_in_range(count, used / page_bytes, (used + HUGE_BYTES) / page_bytes);
    heap_destroy(heap);
}

/* The rest of the address space is the limit (ulimit -v). */
static void address_space_is_a_limit(void **unused)
{
    const uint64_t left_bytes = UINT64_C(64) << 20, page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    struct rlimit before, limit;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = pages * page_bytes + left_bytes;
    if (limit.rlim_cur > before.rlim_max)
        skip();
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    const uint64_t available_bytes = memory_available_bytes();
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(available_bytes > 0 && available_bytes <= left_bytes);
}

/* ---- libjpeg's manager ---- */

static jmp_buf refused;

static void jump(j_common_ptr jpeg)
{
    longjmp(refused, 1);
}

/* Virtual arrays as libjpeg.txt promises them, also those that no decoder here asks for. */
static void virtual_arrays_are_in_memory(void **unused)
{
    enum { WIDTH = 70, ROWS = 5 };
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct bump bump;

    assert_int_equal(bump_open(&bump, 1 << 16, 1 << 20), 0);
    memset(bump_alloc(&bump, 60000), 0xaa, 60000); /* of an image before */
    bump_reset(&bump);
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = jump;
    jpeg_create_decompress(&jpeg);
    assert_int_equal(bump_serve_jpeg(&bump, (struct jpeg_common_struct *)&jpeg), 0);
    j_common_ptr common = (j_common_ptr)&jpeg;
    if (setjmp(refused))
        fail_msg("a good request is refused");
    jvirt_sarray_ptr samples =
        jpeg.mem->request_virt_sarray(common, JPOOL_IMAGE, TRUE, WIDTH, ROWS, 1);
    jvirt_barray_ptr blocks =
        jpeg.mem->request_virt_barray(common, JPOOL_IMAGE, TRUE, WIDTH, ROWS, 1);
    jpeg.mem->realize_virt_arrays(common);
    JSAMPARRAY rows = jpeg.mem->access_virt_sarray(common, samples, 0, ROWS, TRUE);
    JBLOCKARRAY block_rows = jpeg.mem->access_virt_barray(common, blocks, 0, ROWS, TRUE);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal((uintptr_t)rows[i] % 64, 0); /* padded for SIMD */
        for (int k = 0; k < WIDTH; k++)
            assert_true(rows[i][k] == 0 && block_rows[i][k][0] == 0 && block_rows[i][k][63] == 0);
        memset(rows[i], i + 1, WIDTH);
        memset(block_rows[i], i + 1, sizeof(JBLOCK) * WIDTH);
    }
    for (int i = 0; i < ROWS; i++) /* no row overlaps another */
        assert_true(rows[i][0] == i + 1 && rows[i][WIDTH - 1] == i + 1 &&
                    block_rows[i][WIDTH - 1][63] == (i + 1) * 257);
    /* A window of the rows, up to the last. */
    assert_ptr_equal(jpeg.mem->access_virt_sarray(common, samples, 2, 3, FALSE)[0], rows[2]);
    assert_ptr_equal(jpeg.mem->access_virt_barray(common, blocks, 4, 1, FALSE)[0], block_rows[4]);
    for (volatile int wrong = 0; wrong < 4; wrong++) {
        if (setjmp(refused))
            continue;
        if (wrong == 0)
            jpeg.mem->request_virt_sarray(common, JPOOL_PERMANENT, FALSE, WIDTH, ROWS, 1);
        else if (wrong == 1)
            jpeg.mem->request_virt_barray(common, JPOOL_PERMANENT, FALSE, WIDTH, ROWS, 1);
        else if (wrong == 2)
            jpeg.mem->access_virt_sarray(common, samples, 3, 3, FALSE);
        else
            jpeg.mem->access_virt_barray(common, blocks, ROWS + 1, 0, FALSE);
        fail_msg("wrong request %d is served", wrong);
    }
    jpeg_destroy_decompress(&jpeg);
    bump_close(&bump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_arrays_are_in_memory),
        cmocka_unit_test(extents_never_overlap_and_merge_again),
        cmocka_unit_test(memory_of_one_size_is_used_again_at_once),
        cmocka_unit_test(what_was_freed_can_be_allocated_again),
        cmocka_unit_test(what_will_be_used_is_touched),
        cmocka_unit_test(address_space_is_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
