/* SPDX-License-Identifier: Apache-2.0 */
#include "base/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>

enum { WIDTH_MIN = 40, WIDTH_MAX = 4096 };

unsigned terminal_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    const unsigned long asked = columns ? strtoul(columns, NULL, 10) : 0;
    struct winsize size;

    if (asked >= WIDTH_MIN && asked <= WIDTH_MAX)
        return (unsigned)asked;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN)
        return size.ws_col;
    return TERMINAL_WIDTH;
}
