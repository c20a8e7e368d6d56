/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

void finding_say(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
{
    va_list arguments;

    finding->state = state;
    va_start(arguments, format);
    vsnprintf(finding->what, sizeof finding->what, format, arguments);
    va_end(arguments);
}

void finding_advise(struct doctor_finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, arguments);
    va_end(arguments);
}
