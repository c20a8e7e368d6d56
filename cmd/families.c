/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/families.h"

#include "decode/decoder.h"
#include "cmd/net/transport.h"
#include "formats/format.h"
#include "cmd/pack/source.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "telemetry/probe.h"
#include "trainer/backend.h"
#include "trainer/trainer.h"

const struct family family_table[] = {
    {"format", "format", "how samples lie in files", format_registry},
    {"reader", "reader", "what brings bytes from storage", reader_registry},
    {"shuffle", "shuffle", "the order of the samples of an epoch", shuffle_registry},
    {"decoder", "decode", "what makes a row of a batch out of an image", decoder_registry},
    {"backend", "backend", "what computes a network", backend_registry},
    {"trainer", "trainer", "what takes the batches", trainer_registry},
    {"transport", "transport", "how messages travel between ranks", transport_registry},
    {"probe", "probes", "what iobench monitor watches", probe_registry},
    {"source", "from", "what iobench pack makes a data set out of", source_registry},
    {0},
};
