/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pauses.h"

#include "base/atomic.h"

#include <signal.h>

static struct counter pauses;

/* There is no signal for the stop that a process could catch, but one for its end. */
static void on_continue(int number)
{
    (void)number;
    counter_add(&pauses, 1);
}

void pauses_watch(void)
{
    struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART | SA_ONSTACK};

    sigemptyset(&action.sa_mask);
    sigaction(SIGCONT, &action, NULL);
}

uint64_t pauses_count(void)
{
    return counter_get(&pauses);
}
