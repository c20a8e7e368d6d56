/* SPDX-License-Identifier: Apache-2.0 */
#include "base/startup.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

void startup_undo_inherited(void)
{
    static const int errors[] = {SIGPIPE, SIGXFSZ};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    enum { MAIN_BYTES = 8 << 20, THREAD_BYTES = 2 << 20 }; /* of Linux; of glibc without a limit */
    struct rlimit limit;
    pthread_attr_t attributes;
    size_t bytes = 0;
    sigset_t none;

    /* In this order each open() returns the descriptor being checked. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            break;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        sigaction(errors[i], &ignore, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Threads would get what the limit was when the program started. Theirs are not limited by it.
     */
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < MAIN_BYTES) {
        limit.rlim_cur = limit.rlim_max < MAIN_BYTES ? limit.rlim_max : MAIN_BYTES;
        setrlimit(RLIMIT_STACK, &limit);
    }
    if (pthread_getattr_default_np(&attributes))
        return;
    pthread_attr_getstacksize(&attributes, &bytes);
    if (bytes < THREAD_BYTES && pthread_attr_setstacksize(&attributes, THREAD_BYTES) == 0)
        pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    unsetenv("OMP_STACKSIZE"); /* else of the threads that compute, whatever it says */
    unsetenv("GOMP_STACKSIZE");
}
