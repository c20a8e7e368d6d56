/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stop.h"

#include "base/fail.h"

#include <errno.h>

struct flag stop_asked;

void stop_ask(int number)
{
    (void)number;
    flag_set(&stop_asked);
}

int stop_check(void)
{
    return flag_get(&stop_asked) ? fail(EINTR, "interrupted") : 0;
}
