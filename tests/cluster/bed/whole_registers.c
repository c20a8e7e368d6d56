/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded under user-mode Linux: ptrace() that writes all extended registers of a process.
 *
 * User-mode Linux 6.1 saves and restores the extended registers of its processes (NT_X86_XSTATE) in
 * a buffer that ends after AVX-512 and PKRU. The kernel below lets any part be read, but takes only
 * all of them at once. On a CPU with AMX they are four times as long, so each restore fails, and
 * the guest dies with "ptrace set fp regs failed, errno = 14" as its first process starts.
 *
 * A write that is too short is completed here: components beyond its end get their initial state,
 * since the header's XSTATE_BV then has no bit of theirs. No process of a guest can have changed
 * them: AMX must be requested by arch_prctl(), which user-mode Linux refuses. Everything else, and
 * every call where the write is long enough, passes unchanged.
 *
 * Components are copied in the standard (not compacted) layout, which ptrace() uses (Intel SDM
 * volume 1, chapter 13).
 */
#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
    XSAVE_LEAF = 13,
    COMPONENTS = 63,
    XSTATE_BV = 512,          /* offset of the bits of components that are not in initial state */
    LEAST_BYTES = 512 + 64,   /* x87 and SSE, and the header */
    LARGEST_BYTES = 64 * 1024 /* more than any CPU has */
};

/* Not on the stack: guests call from kernel stacks of 16 KiB. A guest has one CPU, so one buffer is
 * enough. */
static unsigned char whole[LARGEST_BYTES] __attribute__((aligned(64)));

static long (*next_ptrace)(int, ...);

__attribute__((constructor)) static void find_next(void)
{
    void *found = dlsym(RTLD_NEXT, "ptrace");

    memcpy(&next_ptrace, &found, sizeof found);
}

/* Return the bits of the components that end within the first `bytes`. */
static uint64_t components_within(size_t bytes)
{
    uint64_t bits = 3; /* x87 and SSE, which leaf 13 does not list */

    for (unsigned i = 2; i < COMPONENTS; i++) {
        unsigned size, offset, flags, unused;
        __cpuid_count(XSAVE_LEAF, i, size, offset, flags, unused);
        if (size && !(flags & 1) && offset + size <= bytes) /* bit 0: supervisor state */
            bits |= UINT64_C(1) << i;
    }
    return bits;
}

/* Return how many bytes the kernel wants; 0 if it does not say. */
static size_t wanted_bytes(int process)
{
    struct iovec all = {whole, sizeof whole};

    return next_ptrace(PTRACE_GETREGSET, process, NT_X86_XSTATE, &all) < 0 ? 0 : all.iov_len;
}

static long write_registers(int process, const struct iovec *given)
{
    static size_t wanted; /* the same for all processes of a machine */
    uint64_t present;

    if (wanted == 0)
        wanted = wanted_bytes(process);
    if (given->iov_len < LEAST_BYTES || given->iov_len >= wanted)
        return next_ptrace(PTRACE_SETREGSET, process, NT_X86_XSTATE, given);
    memset(whole, 0, wanted);
    memcpy(whole, given->iov_base, given->iov_len);
    memcpy(&present, whole + XSTATE_BV, sizeof present);
    present &= components_within(given->iov_len);
    memcpy(whole + XSTATE_BV, &present, sizeof present);
    struct iovec all = {whole, wanted};
    return next_ptrace(PTRACE_SETREGSET, process, NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list list;

    va_start(list, request);
    const int process = va_arg(list, int);
    void *address = va_arg(list, void *), *data = va_arg(list, void *);
    va_end(list);
    return request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE
               ? write_registers(process, data)
               : next_ptrace(request, process, address, data);
}
