/* SPDX-License-Identifier: Apache-2.0 */
/* What the leak sanitizer overlooks. Compiled in, because a program in its sandbox cannot read a
 * file of suppressions at exit. Linked by name (-u), in builds with sanitizers only. */
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>

/* Leave out thread-local storage of libraries that are loaded late: gcc 12's leak sanitizer crashes
 * reading that of OpenMP's threads, whose libgomp iobench-cpu.so loads. Let malloc() fail for sizes
 * larger than memory, as it does elsewhere. */
const char *__asan_default_options(void)
{
    return "intercept_tls_get_addr=0:allocator_may_return_null=1";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

/* Leaks of libraries that are not ours to mend:
 * - libnfs 4.0 frees neither the client name of a context nor requests that a lost connection took;
 * - glibc 2.36's loader, started by its own name as portable packages do, keeps 368 bytes of a
 * module whose library is missing;
 * - cuDNN 9 keeps a handle of cublasLt for each engine that it finishes for a described device. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libnfs.so\n"
           "leak:ld-linux\n"
           "leak:libcublasLt\n";
}
