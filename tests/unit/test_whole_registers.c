/* SPDX-License-Identifier: Apache-2.0
 *
 * The library preloaded under user-mode Linux, on a described kernel: one that wants the registers
 * of a CPU with AMX, whatever this CPU has.
 */
#include "tests/unit/unit.h"

#if defined __x86_64__
#include "tests/cluster/bed/whole_registers.c"

enum { AMX_BYTES = 11008, GUEST_BYTES = 2696, AVX_END = 832 };

static unsigned char written[AMX_BYTES], given[AMX_BYTES];
static size_t written_bytes;
static int last_request;

/* As the kernel below: reads what is asked for, writes all or nothing. */
static long kernel(int request, ...)
{
    va_list list;

    va_start(list, request);
    (void)va_arg(list, int);
    (void)va_arg(list, void *);
    struct iovec *data = va_arg(list, void *);
    va_end(list);
    last_request = request;
    if (request == PTRACE_GETREGSET && data->iov_len > AMX_BYTES)
        data->iov_len = AMX_BYTES;
    if (request != PTRACE_SETREGSET)
        return 0;
    written_bytes = data->iov_len;
    memset(written, 0xff, sizeof written);
    memcpy(written, data->iov_base, data->iov_len);
    return data->iov_len == AMX_BYTES ? 0 : -1;
}

static long restore(size_t bytes)
{
    struct iovec data = {given, bytes};

    return ptrace(PTRACE_SETREGSET, 1, (void *)(uintptr_t)NT_X86_XSTATE, &data);
}

static uint64_t present(void)
{
    uint64_t bits;

    memcpy(&bits, written + XSTATE_BV, sizeof bits);
    return bits;
}

static int start(void **state)
{
    next_ptrace = kernel;
    memset(given, 0xff, sizeof given);
    return 0;
}

static void completes_a_short_write(void **state)
{
    assert_int_equal(restore(GUEST_BYTES), 0);
    assert_int_equal(written_bytes, AMX_BYTES);
    assert_memory_equal(written, given, XSTATE_BV);
    assert_memory_equal(written + XSTATE_BV + 8, given, GUEST_BYTES - XSTATE_BV - 8);
    for (size_t i = GUEST_BYTES; i < AMX_BYTES; i++)
        assert_int_equal(written[i], 0);
    assert_int_equal(present() >> 17 & 3, 0); /* AMX */
}

static void keeps_only_components_that_were_given(void **state)
{
    assert_int_equal(restore(LEAST_BYTES), 0);
    assert_int_equal(present(), 3);
    assert_int_equal(restore(AVX_END), 0);
    assert_int_equal(present(), __builtin_cpu_supports("avx") ? 7 : 3);
    given[XSTATE_BV] = 2; /* nothing is added */
    assert_int_equal(restore(AVX_END), 0);
    assert_int_equal(present(), 2);
}

static void passes_everything_else(void **state)
{
    struct iovec data = {given, 64};

    assert_int_equal(restore(AMX_BYTES), 0);
    assert_memory_equal(written, given, AMX_BYTES);
    assert_int_equal(restore(LEAST_BYTES - 1), -1); /* no header */
    assert_int_equal(written_bytes, LEAST_BYTES - 1);
    ptrace(PTRACE_SETREGSET, 1, (void *)(uintptr_t)NT_PRSTATUS, &data);
    assert_int_equal(written_bytes, 64);
    ptrace(PTRACE_CONT, 1, NULL, NULL);
    assert_int_equal(last_request, PTRACE_CONT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(completes_a_short_write, start),
        cmocka_unit_test_setup(keeps_only_components_that_were_given, start),
        cmocka_unit_test_setup(passes_everything_else, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77; /* user-mode Linux is for x86 */
}
#endif
