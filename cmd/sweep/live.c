/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sweep/live.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/text_stream.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_AROUND = 4 }; /* heading, status line and prompt */

struct sweep_live sweep_live_start(const struct sweep *sweep)
{
    return (struct sweep_live){.sweep = sweep,
                               .line = line_start(),
                               .total = (size_t)sweep->plan.cells * sweep->table.rounds,
                               .done = sweep->folder.kept};
}

static void time_left(char text[LINE_PART_BYTES], uint64_t left_ns)
{
    const uint64_t seconds = left_ns / 1000000000;

    text[0] = '\0';
    if (left_ns)
        snprintf(text, LINE_PART_BYTES, ", %u:%02u:%02u left", (unsigned)(seconds / 3600),
                 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
}

/* ---- the table on a terminal ---- */

static uint32_t rows_that_fit(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_row < 2 * ROWS_AROUND)
        return 20;
    return size.ws_row - ROWS_AROUND;
}

static unsigned columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20 ? 80 : size.ws_col;
}

static void erase(struct sweep_live *live)
{
    line_clear(&live->line);
    if (live->drawn)
        dprintf(STDERR_FILENO, "\033[%uA\033[J", live->drawn);
    live->drawn = 0;
}

/* Draw the rows around the cell measured last. */
static void draw(struct sweep_live *live)
{
    const uint32_t cells = live->sweep->plan.cells, rows = rows_that_fit();
    const uint32_t count = cells < rows ? cells : rows;
    uint32_t first = live->cell > count / 2 ? live->cell - count / 2 : 0;
    struct text_stream table;
    char *text = NULL, *rest, *line;
    size_t bytes;

    first = first + count > cells ? cells - count : first;
    if (text_stream_open(&table) == 0)
        sweep_print_cells(table.stream, live->sweep, first, count);
    if (text_stream_take(&table, &text, &bytes) == 0) {
        erase(live);
        for (rest = text; (line = strsep(&rest, "\n")) && rest; live->drawn++)
            dprintf(STDERR_FILENO, "%.*s\n", (int)columns() - 1, escape_shown(line));
    }
    free(text);
}

/* ---- */

static void show_status(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    char text[sizeof live->line.last], title[128], left[LINE_PART_BYTES];
    const uint64_t seconds = (clock_now_ns() - live->cell_start_ns) / 1000000000;

    time_left(left, live->left_ns);
    snprintf(text, sizeof text, "%zu of %zu%s; run %u of %u, %u s: %s", live->done + 1, live->total,
             left, live->round + 1, sweep->table.rounds, (unsigned)seconds,
             sweep_title(&sweep->plan, live->cell, title, sizeof title));
    line_show(&live->line, text);
}

void sweep_live_begin(struct sweep_live *live, uint32_t cell, uint32_t round, uint64_t left_ns)
{
    live->cell = cell;
    live->round = round;
    live->left_ns = left_ns;
    live->cell_start_ns = clock_now_ns();
    show_status(live);
}

bool sweep_live_tick(void *context)
{
    show_status(context);
    return false;
}

/* All that is measured from now on may be in vain, which the table does not show. */
static void tell_replaced(struct sweep_live *live, const struct sweep_figures *figures)
{
    if (!figures->is_replaced || live->told_replaced)
        return;
    live->told_replaced = true;
    erase(live);
    fprintf(stderr, "iobench sweep: what is measured of it now is not valid: %s\n",
            escape_shown(figures->reason));
}

void sweep_live_end(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    const struct sweep_figures *figures = sweep_at(&sweep->table, live->cell, live->round);
    char title[512], rate[WORDS_BYTES], left[LINE_PART_BYTES];

    live->done++;
    tell_replaced(live, figures);
    if (live->line.shown) {
        draw(live);
        return;
    }
    time_left(left, live->left_ns);
    sweep_title(&sweep->plan, live->cell, title, sizeof title);
    if (figures->is_valid)
        fprintf(stderr, "%zu of %zu%s: %s: %s samples/s%s%s\n", live->done, live->total, left,
                escape_shown(title), words_rate(figures->samples_per_s, rate),
                *figures->limit ? ", limit " : "", figures->limit);
    else
        fprintf(stderr, "%zu of %zu%s: %s: not valid: %s\n", live->done, live->total, left,
                escape_shown(title), escape_shown(figures->reason));
}

void sweep_live_clear(struct sweep_live *live)
{
    erase(live);
}
