/* SPDX-License-Identifier: Apache-2.0
 * The acceptance test of a simulated cluster: a job file with the figures to reach. */
#include "base/gradients.h"
#include "base/text_stream.h"
#include "cmd/checkpoint/model.h"
#include "cmd/outputs.h"
#include "cmd/size/page.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bytes_per_parameter = 14; /* of a checkpoint: cmd/checkpoint/model.h */
static const double mib = 1 << 20;

static void write_head(FILE *file, const struct size_case *cluster)
{
    const struct sizing_answer *answer = &cluster->answer;
    const double nodes = answer->plant.nodes;
    char rate[WORDS_BYTES];

    fputs(report_acceptance_mark, file);
    for (unsigned i = 0; i < cluster->doubt_count; i++)
        fprintf(file, "# In doubt: %s\n", cluster->doubts[i]);
    fprintf(file,
            "# Acceptance of %s for %.0f x %s, %s.\n"
            "# Storage must sustain %s, read by all %.0f nodes at once. Mount it on each of them;\n"
            "# set data= to a data set there (iobench pack synthetic:... makes one) that is at\n"
            "# least five times as large as the memory of a node, and start one rank a node:\n"
            "#\n",
            cluster->storage, cluster->gpus, cluster->gpu, cluster->network,
            words_byte_rate(answer->storage_bytes_per_s, rate), nodes);
    fprintf(file,
            "#     mpirun -n %.0f --map-by node iobench accept.ini\n"
            "#\n"
            "# Exit status 0: passed. 1: failed; each figure and its goal are in the messages.\n",
            nodes);
}

static void write_reads(FILE *file, const struct size_case *cluster)
{
    const struct sizing_answer *answer = &cluster->answer;
    const struct sizing_plant *plant = &answer->plant;

    fprintf(file,
            "[global]\n"
            "data=/mnt/set\n"
            "drop-caches=strict\n"
            "runs=3\n"
            "epochs=1\n"
            "bs=%.0f\n"
            "batch-size=%.0f\n"
            "prefetch=%.0f\n\n",
            fmax(512, plant->of[SIZING_READ_BYTES]), plant->of[SIZING_BATCH],
            plant->of[SIZING_PREFETCH]);
    fprintf(file,
            "[storage]\n"
            "decode=none\n"
            "require-rate=%.0fB/s\n\n"
            "[storage and CPUs]\n"
            "decode=%s\n"
            "require-samples-per-s=%.6g\n",
            answer->storage_bytes_per_s, plant->of[SIZING_DECODE_S] > 0 ? "jpeg" : "none",
            answer->goal_samples_per_s);
}

/* Gradients travel in buckets: an all-reduce of one. */
static void write_fabric(FILE *file, const struct sizing_answer *answer)
{
    const double bucket = answer->plant.of[SIZING_GRADIENT_BYTES] / GRADIENTS_BUCKETS;
    const double size = mib * exp2(round(log2(fmin(256, fmax(1, bucket / mib)))));

    if (!(answer->fabric_bytes_per_s > 0))
        return;
    fprintf(file,
            "\n# A ring all-reduce over the nodes, hidden by the backward pass. MPI must use all\n"
            "# ports of a node that the figure needs.\n"
            "[fabric]\n"
            "command=net\n"
            "messages=no\n"
            "from=%.0f\n"
            "to=%.0f\n"
            "require-nodes=%.0f\n"
            "require-all-reduce=%.0fB/s\n",
            size, size, answer->plant.nodes, ceil(answer->fabric_bytes_per_s));
}

static void write_checkpoint(FILE *file, const struct size_case *cluster)
{
    const struct sizing_answer *answer = &cluster->answer;
    const double bytes = answer->plant.of[SIZING_CHECKPOINT_BYTES];

    if (!(bytes > 0))
        return;
    fprintf(file,
            "\n# Saving and restoring may each cost %g%% of the time. Needs space for three "
            "checkpoints.\n"
            "[checkpoint]\n"
            "command=checkpoint\n"
            "folder=/mnt/checkpoints\n"
            "model=job,params=%.0f\n"
            "ranks=%.0f\n"
            "rank-shift=%.0f\n"
            "writes=3\n"
            "reads=2\n"
            "require-write-rate=%.0fB/s\n"
            "require-read-rate=%.0fB/s\n",
            100 * SIZING_SAVING_SHARE, ceil(bytes / bytes_per_parameter),
            fmin(cluster->gpus, MODEL_RANKS_MAX),
            answer->plant.nodes > 1 ? ceil(answer->plant.of[SIZING_GPUS]) : 0,
            ceil(answer->checkpoint_write_per_s), ceil(answer->checkpoint_read_per_s));
}

int size_page_acceptance(const struct size_case *cluster, const char *path)
{
    struct text_stream stream;

    if (text_stream_open(&stream))
        return -ENOMEM;
    write_head(stream.stream, cluster);
    write_reads(stream.stream, cluster);
    write_fabric(stream.stream, &cluster->answer);
    write_checkpoint(stream.stream, cluster);
    return outputs_write(path, &stream);
}
