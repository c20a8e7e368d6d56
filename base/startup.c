/* SPDX-License-Identifier: Apache-2.0 */
#include "base/startup.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void startup_undo_inherited(void)
{
    static const int errors[] = {SIGPIPE, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t none;

    /* In this order each open() returns the descriptor being checked. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            break;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        sigaction(errors[i], &ignore, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
