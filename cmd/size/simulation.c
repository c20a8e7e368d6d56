/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/simulation.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RING_MOST = 1 << 14, EPOCHS_FOLLOWED = 4 };

/* One node. Times are seconds since the start of the epoch. */
struct followed_node {
    struct random random;
    double read_free;       /* when storage can begin the next read */
    double io_free;         /* when the I/O thread can look after it */
    double decode_free;     /* when decode threads can begin the next piece */
    double cores_free;      /* when the cores have done all that was asked of them */
    double *rings;          /* memory of both rings: */
    double *read;           /* when each piece was in memory */
    double *decoded;        /* when its memory was released */
    uint64_t reads, pieces; /* pieces read and decoded so far */
};

struct simulation {
    const struct sizing_plant *plant;
    struct followed_node *nodes;
    unsigned node_count, pieces; /* pieces: per batch */
    unsigned ahead;              /* pieces between storage and decoding */
    unsigned buffer, window;     /* of the shuffle, in pieces */
    unsigned read;               /* pieces that one read brings, at least one */
    unsigned turn;               /* reads that the I/O thread ends before it delivers any */
    uint64_t last;               /* index of the last piece that the epoch reads */
    unsigned buffers;            /* batch buffers: those ready and the one in use */
    double *given_back;          /* ring of buffers: when the step released each */
    double end;                  /* of the epoch before: its last step */
    double batch;                /* samples per step of a node */
    double piece_s, load_s,
        decode_s;             /* per piece: storage or cache, I/O thread, one decode thread */
    double threads;           /* that decode */
    double step_s, deviation; /* deviation: of a piece's bytes, relative to the mean */
    double credit_s, owed_s;  /* of a throttle: owed for the last read, which has begun */
    double latency_s, latency_deviation;
};

struct epoch_times {
    double seconds, first_batch_s, stalled_s;
};

static unsigned whole(double value, unsigned least, unsigned most)
{
    if (!(value > least))
        return least;
    return value < most ? (unsigned)(value + 1e-9) : most;
}

/* Divide a batch into 16 to 64 pieces, or into its samples if fewer. */
static int start(struct simulation *simulation, uint64_t seed)
{
    const struct sizing_plant *plant = simulation->plant;
    const unsigned followed = whole(plant->nodes, 1, SIZING_NODES_MOST);
    /* The slowest of all nodes counts, not of those simulated: the expected maximum of n normal
     * values grows as sqrt(2 ln n). */
    const double grow =
        plant->nodes > followed && followed > 1 ? sqrt(log(plant->nodes) / log(followed)) : 1;

    simulation->node_count = followed;
    simulation->batch = plant->of[SIZING_BATCH] * plant->of[SIZING_GPUS];
    simulation->pieces =
        whole(simulation->batch, 1, simulation->node_count > 4 ? 16 : SIZING_PIECES_MOST);
    simulation->buffers = whole(plant->of[SIZING_PREFETCH], 1, 1024) + 1;
    const double samples = simulation->batch / simulation->pieces;
    const double bytes = samples * plant->of[SIZING_SAMPLE_BYTES];
    simulation->buffer = whole(ceil(plant->of[SIZING_BUFFER] / samples), 0, RING_MOST / 2);
    simulation->window = whole(round(plant->of[SIZING_WINDOW] / samples), 0, RING_MOST / 4);
    simulation->read = whole(round(plant->of[SIZING_READ_BYTES] / bytes), 1, RING_MOST / 8);
    /* A shuffle that needs more memory would not start; sizing does not check for that. */
    simulation->ahead =
        whole(plant->of[SIZING_RECORD_BYTES] / bytes,
              simulation->buffer + simulation->window + simulation->read, RING_MOST);
    simulation->deviation =
        grow * plant->of[SIZING_SAMPLE_SD_BYTES] / plant->of[SIZING_SAMPLE_BYTES] / sqrt(samples);
    /* The latencies of a piece's reads average out. */
    const double reads = fmax(1, bytes / plant->of[SIZING_READ_BYTES]);
    simulation->latency_deviation = grow * plant->of[SIZING_STORAGE_LATENCY_CV] / sqrt(reads);
    simulation->step_s = sizing_step_s(plant);
    simulation->threads = sizing_threads(plant);
    simulation->given_back = memory_array(simulation->buffers, sizeof(double));
    simulation->nodes = memory_array(simulation->node_count, sizeof *simulation->nodes);
    for (unsigned i = 0; simulation->nodes && i < simulation->node_count; i++) {
        simulation->nodes[i].random = random_start(random_hash(seed, i, 0));
        simulation->nodes[i].rings = memory_array(2 * (size_t)simulation->ahead, sizeof(double));
        if (!simulation->nodes[i].rings)
            return -ENOMEM;
        simulation->nodes[i].read = simulation->nodes[i].rings;
        simulation->nodes[i].decoded = simulation->nodes[i].rings + simulation->ahead;
    }
    return simulation->given_back && simulation->nodes ? 0 : -ENOMEM;
}

static double vary(struct random *random, double deviation)
{
    return deviation > 0 ? fmax(0.05, 1 + deviation * random_normal(random)) : 1;
}

/* One turn of the I/O thread. Reads from memory end in the call that begins them, so it delivers
 * none before it has begun all that depth, memory and a throttle allow. */
static void read_turn(const struct simulation *simulation, struct followed_node *node)
{
    const uint64_t first = node->reads, memory = node->pieces + simulation->ahead;
    const double cores = simulation->plant->of[SIZING_CORES];

    for (unsigned reads = 0; reads < simulation->turn; reads++) {
        const struct followed_node before = *node;
        const uint64_t left = simulation->last + 1 - node->reads;
        const uint64_t count = left < simulation->read ? left : simulation->read;
        if (reads && (count == 0 || node->reads + count > memory))
            break;
        const double size = (double)count * vary(&node->random, simulation->deviation);
        /* This piece reuses the memory of the piece `ahead` pieces earlier. */
        const double ask = node->decoded[(node->reads + count - 1) % simulation->ahead];
        const double seconds = simulation->piece_s * size;
        /* A throttle makes up for the time in which it was not asked, up to its credit, and
         * collects for a read that has begun. */
        const double latency =
            simulation->latency_s * vary(&node->random, simulation->latency_deviation);
        node->read_free = fmax(node->read_free, ask - simulation->credit_s) + seconds;
        const double ready =
            fmax(ask, node->read_free - fmin(simulation->owed_s, seconds)) + latency;
        if (reads && ready > node->io_free) {
            *node = before;
            break;
        }
        node->io_free = fmax(node->io_free, ready) + simulation->load_s * size;
        node->cores_free = fmax(node->cores_free, ready) + simulation->load_s * size / cores;
        node->reads += count;
    }
    for (uint64_t piece = first; piece < node->reads; piece++)
        node->read[piece % simulation->ahead] = node->io_free;
}

/* Read one piece and decode it at `open` or later. Returns the time when it is in its batch. */
static double carry_piece(const struct simulation *simulation, struct followed_node *node,
                          double open)
{
    /* The last piece that must be in memory before this one is drawn: the end of the window of the
     * one that refills its place in the buffer. */
    const uint64_t window = simulation->window, filled = node->pieces + simulation->buffer;
    const uint64_t end = window ? (filled / window + 1) * window - 1 : filled;
    const uint64_t until = end < simulation->last ? end : simulation->last;

    assert(simulation->buffer + simulation->window + simulation->read <= simulation->ahead);
    while (node->reads <= until)
        read_turn(simulation, node);
    const double ready = fmax(node->read[until % simulation->ahead], open);
    node->cores_free =
        fmax(node->cores_free, ready) + simulation->decode_s / simulation->plant->of[SIZING_CORES];
    node->decode_free = fmax(node->decode_free, ready) + simulation->decode_s / simulation->threads;
    node->decode_free = fmax(node->decode_free, node->cores_free);
    node->decoded[node->pieces++ % simulation->ahead] = node->decode_free;
    return node->decode_free;
}

/* Steps not simulated take as long as the second half of those simulated. */
static struct epoch_times run_epoch(struct simulation *simulation, unsigned epoch,
                                    unsigned steps_most)
{
    const struct sizing_plant *plant = simulation->plant;
    const double steps = plant->of[SIZING_SAMPLES] / (simulation->batch * plant->nodes);
    const unsigned followed = whole(ceil(steps), 1, steps_most);
    struct epoch_times times = {0};
    double end = 0, half = 0;

    /* A batch's end may be part of a piece: the share of one that pieces have on average. */
    const double pieces = fmax(1, ceil(steps * simulation->pieces - 1e-6));
    const double fill = fmin(1, steps * simulation->pieces / pieces);
    const double samples = fill * simulation->batch / simulation->pieces;
    const double bytes = samples * plant->of[SIZING_SAMPLE_BYTES] * plant->of[SIZING_AMPLIFICATION];
    const double hits = sizing_hits(plant, epoch);
    const double rate = sizing_node_bytes_per_s(plant, epoch);
    const double start_s = plant->of[SIZING_START_S], credit_s = plant->of[SIZING_STORAGE_CREDIT_S];
    simulation->piece_s = (1 - hits) * bytes / rate + hits * bytes / plant->of[SIZING_CACHE_RATE];
    simulation->load_s = plant->of[SIZING_LOAD_S] * samples;
    simulation->decode_s = plant->of[SIZING_DECODE_S] * samples;
    simulation->latency_s = hits < 1 ? plant->of[SIZING_STORAGE_LATENCY_S] : 0;
    simulation->turn = simulation->latency_s > 0 ? 1 : whole(plant->of[SIZING_DEPTH], 1, RING_MOST);
    simulation->credit_s = credit_s;
    simulation->owed_s = credit_s > 0 ? plant->of[SIZING_READ_BYTES] / rate : 0;
    /* What a throttle was not asked for until the epoch before ended it makes up, and what it is
     * owed it still collects. */
    for (unsigned i = 0; i < simulation->node_count; i++) {
        struct followed_node *node = &simulation->nodes[i];
        node->read_free =
            credit_s > 0 ? fmax(node->read_free - simulation->end, start_s - credit_s) : start_s;
        node->io_free = start_s;
        node->decode_free = node->cores_free = 0;
        node->reads = node->pieces = 0;
        memset(node->decoded, 0, simulation->ahead * sizeof *node->decoded);
    }
    memset(simulation->given_back, 0, simulation->buffers * sizeof *simulation->given_back);
    /* Where a limit ends the epoch, the buffer has been filled from the rest of the order. */
    const double rest =
        plant->of[SIZING_UNDRAWN] / (simulation->batch * plant->nodes) * simulation->pieces;
    simulation->last = (uint64_t)(pieces + fmin(ceil(rest), simulation->buffer)) - 1;
    for (unsigned step = 0; step < followed; step++) {
        double *buffer = &simulation->given_back[step % simulation->buffers];
        const double share = followed >= steps && step + 1 == followed ? steps - step : 1;
        const unsigned count = whole(ceil(share * simulation->pieces), 1, simulation->pieces);
        double ready = 0; /* when the last node has its batch */
        for (unsigned i = 0; i < simulation->node_count; i++)
            for (unsigned piece = 0; piece < count; piece++)
                ready = fmax(ready, carry_piece(simulation, &simulation->nodes[i], *buffer));
        times.stalled_s += fmax(0, ready - end);
        if (step == 0)
            times.first_batch_s = ready;
        if (step == followed / 2)
            half = end;
        end = fmax(end, ready) + simulation->step_s * share;
        *buffer = end;
    }
    times.seconds = simulation->end = end;
    if (steps > followed) {
        const double scale = (steps - followed) / (followed - followed / 2);
        times.stalled_s += times.stalled_s * (steps - followed) / followed;
        times.seconds += (end - half) * scale;
    }
    return times;
}

int sizing_simulate(const struct sizing_plant *plant, unsigned steps, uint64_t seed,
                    struct sizing_outcome *outcome)
{
    struct simulation simulation = {.plant = plant};
    const unsigned epochs = whole(plant->of[SIZING_EPOCHS], 1, 1000);
    double seconds = 0, first = 0, stalled = 0;
    int code = start(&simulation, seed);

    *outcome = (struct sizing_outcome){0};
    for (unsigned epoch = 0; code == 0 && epoch < epochs && epoch < EPOCHS_FOLLOWED; epoch++) {
        /* All other epochs equal the last one simulated. */
        const double times_over = epoch + 1 < EPOCHS_FOLLOWED ? 1 : epochs - epoch;
        struct epoch_times times = run_epoch(&simulation, epoch, steps ? steps : SIZING_STEPS_MOST);
        if (epoch == 0) {
            first = times.seconds;
            outcome->first_batch_s = times.first_batch_s;
        }
        seconds += times.seconds * times_over;
        stalled += times.stalled_s * times_over;
    }
    for (unsigned i = 0; simulation.nodes && i < simulation.node_count; i++)
        free(simulation.nodes[i].rings);
    free(simulation.nodes);
    free(simulation.given_back);
    if (code)
        return code;
    const double samples = plant->of[SIZING_SAMPLES], save = sizing_checkpoint_s(plant);
    outcome->samples_per_s = samples * epochs / seconds;
    outcome->first_samples_per_s = samples / first;
    outcome->later_samples_per_s =
        epochs > 1 ? samples * (epochs - 1) / (seconds - first) : outcome->first_samples_per_s;
    outcome->stall_share = stalled / seconds;
    if (save > 0)
        outcome->checkpoint_share = save / (save + sizing_checkpoint_interval_s(plant));
    outcome->reached_samples_per_s = outcome->samples_per_s * (1 - outcome->checkpoint_share);
    return 0;
}
