/* SPDX-License-Identifier: Apache-2.0
 * iobench completion: prints the completion of a shell. */
#include "cmd/help/completion.h"

#include "base/nearest.h"
#include "cmd/commands.h"

#include <errno.h>
#include <string.h>

static int completion_run(const struct invocation *invocation)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    const char *wanted = invocation->count ? invocation->operands[0] : shells[0].name;
    struct nearest nearest = nearest_start(wanted);

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        nearest_offer(&nearest, shells[i].name);
        if (strcmp(wanted, shells[i].name) != 0)
            continue;
        shells[i].print();
        return COMMAND_OK;
    }
    nearest_fail(&nearest, EINVAL, "unknown shell");
    return command_misused(invocation);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print the completion of bash, zsh or fish",
    .operands = "[bash|zsh|fish]",
    .operands_maximum = 1,
    .examples = "source <(iobench completion)\tbash: for this shell\n"
                "source <(iobench completion zsh)\tzsh, after compinit\n"
                "iobench completion fish | source\tfish\n",
    .run = completion_run,
};
