/* SPDX-License-Identifier: Apache-2.0
 * The commands, in display order. The first one is the default. */
#include "cmd/commands.h"

#include <string.h>

/* One row each. */
/* clang-format off */
const struct command *const command_registry[] = {
    &command_run,
    &command_train,
    &command_infer,
    &command_checkpoint,
    &command_net,
    &command_pack,
    &command_verify,
    &command_inspect,
    &command_show,
    &command_list,
    &command_doctor,
    &command_compare,
    &command_gather,
    &command_size,
    &command_ramp,
    &command_study,
    &command_shuffle,
    &command_sweep,
    &command_monitor,
    &command_plot,
    &command_report,
    &command_plan,
    &command_completion,
    &command_help,
    NULL,
};
/* clang-format on */

const struct command *command_find(const char *name)
{
    for (int i = 0; command_registry[i]; i++)
        if (strcmp(command_registry[i]->name, name) == 0)
            return command_registry[i];
    return NULL;
}
