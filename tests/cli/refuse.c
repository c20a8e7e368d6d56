/* SPDX-License-Identifier: Apache-2.0
 *
 * refuse NAME ERRNO COMMAND...: run COMMAND with a system call refused, as containers do it:
 * io_uring_setup, io_uring_register or io_uring_enter. For tests/cli/uring.sh.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 99;
    const unsigned number = strcmp(argv[1], "io_uring_setup") == 0      ? __NR_io_uring_setup
                            : strcmp(argv[1], "io_uring_register") == 0 ? __NR_io_uring_register
                                                                        : __NR_io_uring_enter;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)atoi(argv[2])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "refuse: %s\n", strerror(errno));
        return 99;
    }
    execvp(argv[3], argv + 3);
    return 99;
}
