/* SPDX-License-Identifier: Apache-2.0
 * The commands, in display order. The first one is the default. The families of plug-ins. */
#include "cmd/commands.h"
#include "cmd/net/transport.h"
#include "cmd/pack/source.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "telemetry/probe.h"
#include "trainer/backend.h"
#include "trainer/trainer.h"

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

const struct family family_table[] = {
    {"format", "format", "how samples are stored in files", format_registry},
    {"reader", "reader", "how bytes are read from storage", reader_registry},
    {"shuffle", "shuffle", "the order of the samples of an epoch", shuffle_registry},
    {"decoder", "decode", "how an image becomes a row of a batch", decoder_registry},
    {"backend", "backend", "what computes a network", backend_registry},
    {"trainer", "trainer", "what consumes the batches", trainer_registry},
    {"transport", "transport", "how messages travel between ranks", transport_registry},
    {"probe", "probes", "what iobench monitor watches", probe_registry},
    {"source", "from", "what iobench pack reads samples from", source_registry},
    {0},
};
