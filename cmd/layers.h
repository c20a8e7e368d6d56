/* SPDX-License-Identifier: Apache-2.0
 *
 * layers: what settings are made of, each over what was before it: defaults, a preset (--as), a job
 * file, the command line. Main thread.
 */
#ifndef IOBENCH_CMD_LAYERS_H
#define IOBENCH_CMD_LAYERS_H

#include "cmd/command.h"

/* The options of a preset of shuffle/preset.h, those that table has rows for: `train` does not
 * overlap epochs, `shuffle` names its orders otherwise. 0 or -EINVAL. */
int layers_preset(const char *name, const struct option_spec *table, void *settings);

/* What the command line says, which has the last word. 0 or -EINVAL. */
int layers_command_line(const struct invocation *invocation, const struct option_spec *table,
                        void *settings);

#endif
