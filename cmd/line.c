/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/line.h"

#include "base/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 20 };

struct line line_start(void)
{
    const char *terminal = getenv("TERM");

    return (struct line){.shown =
                             isatty(STDERR_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0)};
}

void line_show(struct line *line, const char *text)
{
    if (!line->shown || strcmp(text, line->last) == 0)
        return;
    /* Bypass stderr, which escapes control characters. */
    dprintf(STDERR_FILENO, "\r%.*s\033[K", (int)terminal_width(STDERR_FILENO) - 1,
            escape_shown(text));
    snprintf(line->last, sizeof line->last, "%s", text);
}

void line_clear(struct line *line)
{
    if (line->shown && line->last[0])
        dprintf(STDERR_FILENO, "\r\033[K");
    line->last[0] = '\0';
}

const char *line_bar(char *part, uint64_t done, uint64_t total)
{
    double share = total ? (double)done / (double)total : 0;
    int filled = (int)((share > 1 ? 1 : share) * BAR);

    part[0] = '\0';
    if (total)
        snprintf(part, LINE_PART_BYTES, "[%.*s%.*s] %3.0f%%", filled, "####################",
                 BAR - filled, "....................", 100 * (share > 1 ? 1 : share));
    return part;
}

const char *line_left(char *part, uint64_t done, uint64_t total, uint64_t elapsed_ns)
{
    part[0] = '\0';
    if (done == 0 || done > total || elapsed_ns < 1000000000)
        return part;
    double left = (double)elapsed_ns * 1e-9 * (double)(total - done) / (double)done;
    if (left < 360000)
        snprintf(part, LINE_PART_BYTES, "  %d:%02d left", (int)left / 60, (int)left % 60);
    return part;
}
