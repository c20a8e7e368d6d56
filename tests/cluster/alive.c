/* SPDX-License-Identifier: Apache-2.0
 *
 * Run by 2 ranks, with what rank 1 does without asking for the others, while rank 0 waits for it
 * with a --rank-timeout of 4 s: "computes", until rank 0 has waited for 5 s; "computes-on" for 10
 * s, while rank 0 has failed; "blocks" for ever, or "comes" to the check and blocks
 * before it takes part; or "does" what blocks until rank 0 has waited for
 * 5 s, by ranks_do(), and without a heart.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "ranks/ranks.h"
#include "ranks/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char told[] = "rank-0-waits";

static void note_waiting(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
    close(open(told, O_CREAT | O_WRONLY, 0600));
}

static int work(struct ranks *ranks, const char *what)
{
    const uint64_t start_ns = clock_now_ns();
    const bool until_told = strcmp(what, "computes") == 0;

    if (strcmp(what, "comes") == 0)
        ranks->ops->call(ranks->state, 0, word_of(ranks->gathers, WORD_ARRIVES));
    if (strcmp(what, "blocks") == 0 || strcmp(what, "comes") == 0)
        for (;;)
            pause();
    while (until_told ? access(told, F_OK) != 0 : clock_now_ns() < start_ns + 10000000000)
        ;
    return 0;
}

static int block_until_told(void *unused)
{
    (void)unused;
    while (access(told, F_OK) != 0)
        clock_sleep_ns(10000000);
    return 0;
}

int main(int argc, char **argv)
{
    struct ranks ranks;
    int code = argc == 2 ? ranks_join(&ranks) : fail(EINVAL, "what shall rank 1 do?");
    const bool does = argc == 2 && strcmp(argv[1], "does") == 0;
    if (code == 0 && !does)
        code = ranks_heart_start(&ranks);
    if (code) {
        fprintf(stderr, "%s\n", fail_reason());
        return 1;
    }
    const bool fails = strcmp(argv[1], "computes-on") == 0;
    const uint32_t rank = ranks.place.rank;
    ranks.waiting = note_waiting;
    code = ranks_meet(&ranks, 0, NULL);
    ranks.silence_ns = fails ? 0 : 4000000000;
    if (code == 0 && rank == 0 && fails) {
        code = fail(EIO, "this rank has failed");
        ranks_call_off(&ranks);
    } else if (code == 0 && rank == 1) {
        code =
            does ? ranks_do(&ranks, "a slow call", block_until_told, NULL) : work(&ranks, argv[1]);
    }
    code = ranks_meet(&ranks, code, NULL);
    if (does && rank == 0)
        note_waiting(NULL, "rank 0 waits no more"); /* or rank 1 would not end */
    fprintf(stderr, "rank %u: %s\n", rank, code ? fail_reason() : "all came");
    ranks_heart_stop(&ranks);
    ranks_leave(&ranks, code != 0);
    return code != 0;
}
