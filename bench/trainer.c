/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the cpu backend trains and infers each network, against others that take turns with it:
 * what its convolutions and fully connected layers take alone (bench/convolutions.h), and the same
 * network in PyTorch on the same CPUs, if a Python that has it is named:
 *
 *     bench/trainer --peer VENV/bin/python [--long] [--network NAME]... [--rounds N] [--threads N]
 *                   [--cpu-time] [--bf16]
 *
 * A step is all of training: normalising the bytes, forward, loss, backward and update; PyTorch
 * gets images that are normalised already, and the better of its two memory formats counts. Quick:
 * three networks on small images; --long: all at their own size. --cpu-time: CPU time in place of
 * time, on one thread, for machines that do other work meanwhile. --bf16: the backend in BF16 takes
 * turns, too; its goals are those of CPUs with AMX.
 */
#include "bench/convolutions.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/stats.h"
#include "base/thread.h"
#include "trainer/backend.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MAX = 64, TURN_MS = 250 };

void omp_set_num_threads(int count); /* of libgomp */

enum series { OURS, BF16, ALONE, PLAIN, LAST, SERIES };

/* The backend in each precision. */
static const char *const backends[] = {
    [OURS] = "cpu:precision=fp32", [BF16] = "cpu:precision=bf16"};
enum { PRECISIONS = 2 };

static const struct {
    const char *network;
    uint32_t side, batch_size;
    bool is_quick;
} cases[] = {
    {"tiny", 32, 64, true},          {"resnet50", 64, 32, true},
    {"googlenet", 64, 32, true},     {"lenet", 28, 64, false},
    {"resnet110", 32, 64, false},    {"alexnet", 224, 32, false},
    {"vgg16", 224, 8, false},        {"vgg19", 224, 8, false},
    {"googlenet", 224, 16, false},   {"inception-bn", 224, 16, false},
    {"inception-v3", 299, 8, false}, {"resnet50", 224, 16, false},
    {"resnet101", 224, 8, false},    {"resnet152", 224, 8, false},
};

struct peer {
    FILE *to, *from; /* NULL: none */
    char version[64];
};

struct bench {
    uint32_t threads;
    int rounds;
    uint64_t (*now_ns)(void);
    struct peer peer;
    struct graph *graph;
    uint32_t batch_size;
    int precisions; /* of backends[] */
    struct plugin_choice choices[PRECISIONS];
    struct backend backends[PRECISIONS];
    struct trainer_batch batch;
    double times[SERIES][ROUNDS_MAX]; /* milliseconds a step */
};

/* ---- PyTorch ---- */

static int peer_start(struct peer *peer, const char *python, const char *program)
{
    char script[4096];
    int to[2], from[2];

    snprintf(script, sizeof script, "%s/bench/trainer_peer.py", program);
    if (pipe(to) || pipe(from))
        return fail(EIO, "no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execlp(python, python, script, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    return child > 0 && peer->to && peer->from ? 0 : fail(EIO, "%s: cannot start", python);
}

static void tell_window(FILE *to, const struct kernel_window *window)
{
    fprintf(to, " %u %u %u %u %u %u %u", window->height, window->width, window->stride,
            window->pad_top, window->pad_left, window->pad_bottom, window->pad_right);
}

static void tell_node(FILE *to, const struct graph *graph, const struct graph_node *node)
{
    static const char *const kinds[] = {[GRAPH_INPUT] = "input",
                                        [GRAPH_CONVOLUTION] = "convolution",
                                        [GRAPH_BATCH_NORM] = "batch_norm",
                                        [GRAPH_RELU] = "relu",
                                        [GRAPH_MAX_POOL] = "max_pool",
                                        [GRAPH_AVERAGE_POOL] = "average_pool",
                                        [GRAPH_ADD] = "add",
                                        [GRAPH_CONCAT] = "concat",
                                        [GRAPH_FULLY_CONNECTED] = "fully_connected",
                                        [GRAPH_LRN] = "lrn",
                                        [GRAPH_DROPOUT] = "dropout"};
    const struct graph_shape *in = &graph->nodes[node->inputs[0]].shape, *out = &node->shape;

    fprintf(to, "node %s %u", kinds[node->kind], node->input_count);
    for (uint32_t i = 0; i < node->input_count; i++)
        fprintf(to, " %u", node->inputs[i]);
    if (node->kind == GRAPH_INPUT)
        fprintf(to, " %u %u %u", out->channels, out->height, out->width);
    if (node->kind == GRAPH_CONVOLUTION) {
        fprintf(to, " %u %u", in->channels, out->channels);
        tell_window(to, &node->window);
        fprintf(to, " %u %d", node->window.groups, node->bias != UINT32_MAX);
    }
    if (node->kind == GRAPH_MAX_POOL || node->kind == GRAPH_AVERAGE_POOL) {
        tell_window(to, &node->window);
        fprintf(to, " %d", node->window.count_padding);
    }
    if (node->kind == GRAPH_BATCH_NORM)
        fprintf(to, " %u %.9g", out->channels, node->epsilon);
    if (node->kind == GRAPH_FULLY_CONNECTED)
        fprintf(to, " %u %u", in->channels * in->height * in->width, out->channels);
    if (node->kind == GRAPH_LRN)
        fprintf(to, " %u %.9g %.9g %.9g", node->lrn.size, node->lrn.alpha, node->lrn.beta,
                node->lrn.k);
    if (node->kind == GRAPH_DROPOUT)
        fprintf(to, " %.9g", node->dropout_rate);
    fputc('\n', to);
}

static int peer_open(struct bench *bench)
{
    struct peer *peer = &bench->peer;
    char line[256];

    if (!peer->to)
        return 0;
    fprintf(peer->to, "graph %u %u %u %s\n", bench->batch_size, bench->threads,
            bench->graph->classes, bench->now_ns == clock_cpu_ns ? "cpu" : "wall");
    for (uint32_t i = 0; i < bench->graph->node_count; i++)
        tell_node(peer->to, bench->graph, &bench->graph->nodes[i]);
    fputs("end\n", peer->to);
    fflush(peer->to);
    return fgets(line, sizeof line, peer->from) && sscanf(line, "ready %63s", peer->version) == 1
               ? 0
               : fail(EIO, "the peer ended: has that Python torch?");
}

static int peer_time(struct bench *bench, bool training, int steps, int round)
{
    char line[256];

    if (!bench->peer.to)
        return 0;
    fprintf(bench->peer.to, "%s %d\n", training ? "train" : "infer", steps);
    fflush(bench->peer.to);
    return fgets(line, sizeof line, bench->peer.from) &&
                   sscanf(line, "took %lf %lf", &bench->times[PLAIN][round],
                          &bench->times[LAST][round]) == 2
               ? 0
               : fail(EIO, "the peer ended");
}

/* ---- ours ---- */

static int our_steps(struct bench *bench, int precision, bool training, int steps, double *step_ms)
{
    const struct kernel_update update = {
        .rate = 1e-4, .momentum = 0.9, .decay = 1e-5, .gradient_scale = 1};
    struct backend *backend = &bench->backends[precision];
    const uint64_t start_ns = bench->now_ns();
    struct backend_loss loss;
    int code = 0;

    for (int i = 0; i < steps && code == 0; i++) {
        if (training)
            code = backend_step(backend, &bench->batch, 0, NULL, NULL, &loss);
        else
            code = backend_infer(backend, &bench->batch, NULL, NULL);
        if (code == 0 && training)
            code = backend_update(backend, &update);
    }
    *step_ms = (double)(bench->now_ns() - start_ns) * 1e-6 / steps;
    return code;
}

static int open_ours(struct bench *bench, bool training)
{
    const struct graph *graph = bench->graph;
    const size_t bytes =
        (size_t)bench->batch_size * graph->nodes[0].shape.height * graph->nodes[0].shape.width * 3;
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    uint8_t *rows = malloc(bytes);
    int32_t *labels = calloc(bench->batch_size, sizeof *labels);
    const struct backend_config config = {.graph = graph,
                                          .batch_size = bench->batch_size,
                                          .training = training,
                                          .seed = 1,
                                          .threads = bench->threads};

    bench->batch =
        (struct trainer_batch){.rows = rows, .labels = labels, .count = bench->batch_size};
    if (!parameters || !rows || !labels)
        return fail(ENOMEM, "out of memory");
    for (size_t i = 0; i < bytes; i++)
        rows[i] = (uint8_t)(i * 2654435761u >> 24);
    for (uint32_t i = 0; i < bench->batch_size; i++)
        labels[i] = (int32_t)(i % graph->classes);
    graph_initialise(graph, 1, parameters);
    int code = 0;
    for (int i = 0; i < bench->precisions && code == 0; i++) {
        code = plugin_choose("backend", backend_registry, backends[i], &bench->choices[i]);
        if (code == 0)
            code = backend_open(&bench->backends[i], &bench->choices[i], &config);
        if (code == -ENOTSUP && i == BF16) {
            printf("skipped bf16: %s\n", fail_reason());
            backend_close(&bench->backends[i]);
            plugin_release(&bench->choices[i]);
            bench->precisions = 1;
            code = 0;
            break;
        }
        if (code == 0)
            code = backend_load(&bench->backends[i], parameters, NULL, NULL);
    }
    free(parameters);
    return code;
}

static void close_ours(struct bench *bench)
{
    for (int i = 0; i < bench->precisions; i++) {
        backend_close(&bench->backends[i]);
        plugin_release(&bench->choices[i]);
    }
    free((void *)(uintptr_t)bench->batch.rows);
    free((void *)(uintptr_t)bench->batch.labels);
}

/* ---- comparing ---- */

static void report(struct bench *bench, const char *name, uint32_t side, bool training)
{
    double median[SERIES], rate[SERIES];

    for (int i = 0; i < SERIES; i++) {
        median[i] = stats_summarise(bench->times[i], (size_t)bench->rounds).median;
        rate[i] = median[i] > 0 ? bench->batch_size / median[i] * 1e3 : 0;
    }
    struct stats_summary ours = stats_summarise(bench->times[OURS], (size_t)bench->rounds);
    const char *what = training ? "training" : "inference";
    printf("%-13s %4u %5u %-9s %9.2f %9.1f %5.1f%% %9.1f %11.1f %11.1f %11.1f\n", name, side,
           bench->batch_size, what, median[OURS], rate[OURS],
           100 * (ours.maximum - ours.minimum) / ours.median, rate[BF16], rate[ALONE], rate[PLAIN],
           rate[LAST]);
    double share = median[ALONE] / median[OURS];
    printf("claim %s_%u_%s_convolutions %.2f share goal >=0.9 %s\n", name, side, what, share,
           share >= 0.9 ? "ok" : "short");
    if (bench->precisions > BF16) {
        const double speed = median[OURS] / median[BF16], goal = training ? 1.6 : 2;
        printf("claim %s_%u_%s_bf16 %.2f x goal >=%.1f %s\n", name, side, what, speed, goal,
               speed >= goal ? "ok" : "short");
    }
    if (bench->peer.to) {
        double best = median[PLAIN] < median[LAST] ? median[PLAIN] : median[LAST];
        double speed = best / median[OURS];
        printf("claim %s_%u_%s_pytorch %.2f x goal >=1.0 %s\n", name, side, what, speed,
               speed >= 1 ? "ok" : "short");
    }
    fflush(stdout);
}

/* After a warm-up, all sides take one turn per round. */
static int compare(struct bench *bench, struct convolutions *alone, bool training)
{
    double warm = 0;
    int code = 0;
    for (int i = bench->precisions; i-- > 0 && code == 0;)
        code = our_steps(bench, i, training, 2, &warm);
    int steps = warm < TURN_MS ? (int)(TURN_MS / warm) + 1 : 1;

    if (code == 0)
        code = peer_time(bench, training, 2, 0);
    for (int round = 0; round < bench->rounds && code == 0; round++) {
        for (int i = 0; i < bench->precisions && code == 0; i++)
            code = our_steps(bench, i, training, steps, &bench->times[i][round]);
        bench->times[ALONE][round] = convolutions_time(alone, steps, bench->now_ns);
        if (code == 0)
            code = peer_time(bench, training, steps, round);
    }
    return code;
}

static int run_case(struct bench *bench, const char *name, uint32_t side, uint32_t batch_size)
{
    const struct network *network = network_find(name);
    int code = 0;

    if (!network || !(bench->graph = network_build(network, side, network->classes)))
        return -EINVAL;
    bench->batch_size = batch_size;
    omp_set_num_threads((int)bench->threads);
    code = peer_open(bench);
    for (int training = 1; training >= 0 && code == 0; training--) {
        struct convolutions *alone = convolutions_create(bench->graph, batch_size, training);
        code = alone ? open_ours(bench, training) : -EIO;
        if (code == 0)
            code = compare(bench, alone, training);
        if (code == 0)
            report(bench, name, side, training);
        close_ours(bench);
        if (alone)
            convolutions_destroy(alone);
    }
    graph_destroy(bench->graph);
    return code;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench/trainer [--long] [--network NAME]... [--rounds 1..%d] [--threads N] "
            "[--cpu-time] [--bf16] [--peer PYTHON]\n"
            "  --long      the networks at their own sizes, and more of them\n"
            "  --cpu-time  of one thread, where others use the machine\n"
            "  --bf16      also in BF16, in turns\n"
            "  --peer      a Python that has PyTorch, which takes turns\n",
            ROUNDS_MAX);
    return 2;
}

int main(int argc, char **argv)
{
    static struct bench bench = {.rounds = 5, .now_ns = clock_now_ns, .precisions = 1};
    const char *python = NULL, *wanted[16];
    int wanted_count = 0;
    bool is_long = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--long") == 0)
            is_long = true;
        else if (strcmp(argv[i], "--cpu-time") == 0)
            bench.now_ns = clock_cpu_ns;
        else if (strcmp(argv[i], "--bf16") == 0)
            bench.precisions = PRECISIONS;
        else if (strcmp(argv[i], "--peer") == 0 && *value)
            python = argv[++i];
        else if (strcmp(argv[i], "--network") == 0 && *value && wanted_count < 16)
            wanted[wanted_count++] = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && atoi(value) > 0 && atoi(value) <= ROUNDS_MAX)
            bench.rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && atoi(value) > 0)
            bench.threads = (uint32_t)atoi(argv[++i]);
        else
            return usage();
    }
    if (bench.now_ns == clock_cpu_ns)
        bench.threads = 1;
    if (bench.threads == 0)
        bench.threads = thread_cpu_count();
    signal(SIGPIPE, SIG_IGN);
    int code = python ? peer_start(&bench.peer, python, BENCH_SOURCE) : 0;
    printf(
        "%d rounds, %u threads%s; images/s of the cpu backend in FP32 and BF16, of its "
        "convolutions alone, of "
        "PyTorch (contiguous, channels last)\n%-13s %4s %5s %-9s %9s %9s %6s %9s %11s %11s %11s\n",
        bench.rounds, bench.threads, bench.now_ns == clock_cpu_ns ? ", CPU time" : "", "", "side",
        "batch", "", "step ms", "cpu", "spread", "bf16", "alone", "contiguous", "last");
    for (size_t i = 0; i < sizeof cases / sizeof *cases && code == 0; i++) {
        bool is_wanted = wanted_count == 0;
        for (int j = 0; j < wanted_count; j++)
            is_wanted |= strcmp(wanted[j], cases[i].network) == 0;
        if (is_wanted && cases[i].is_quick != is_long)
            code = run_case(&bench, cases[i].network, cases[i].side, cases[i].batch_size);
    }
    if (bench.peer.version[0])
        printf("PyTorch %s\n", bench.peer.version);
    if (code)
        fprintf(stderr, "trainer: %s\n", fail_reason());
    return code != 0;
}
