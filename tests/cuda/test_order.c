/* SPDX-License-Identifier: Apache-2.0
 *
 * Data races: the cuda backend on the emulated device, whose streams are threads, all built for
 * ThreadSanitizer, which reports two accesses to the same memory that no event and no wait orders,
 * even if they came out right this time. Uploads
 * ahead, graphs and none, sums by NCCL on a stream of its own, gradients on the host, inference
 * and what is seen when it calibrates.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "trainer/backend.h"
#include "trainer/exchange.h"
#include "trainer/quantise.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 12, CLASSES = 5, BATCH = 4, STEPS = 5, BUCKETS = 3 };
enum { ROWS_BYTES = BATCH * SIDE * SIDE * 3 };

static void must(int code)
{
    if (code)
        fail_msg("%s", fail_reason());
}

/* A stem, a block with a sum, dropout. */
static struct graph *network(void)
{
    struct graph *graph = graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
    uint32_t x = graph_convolution(graph, "stem", 0, 16, graph_square(3, 1, 1), 1, false);

    x = graph_relu(graph, graph_batch_norm(graph, "stem.bn", x, false));
    x = graph_max_pool(graph, x, graph_square(2, 2, 0));
    uint32_t y = graph_convolution(graph, "one", x, 16, graph_square(3, 1, 1), 1, false);
    y = graph_relu(graph, graph_batch_norm(graph, "one.bn", y, false));
    y = graph_convolution(graph, "two", y, 16, graph_square(1, 1, 0), 1, false);
    x = graph_relu(graph, graph_add(graph, graph_batch_norm(graph, "two.bn", y, false), x));
    x = graph_dropout(graph, graph_global_pool(graph, x), 0.25);
    graph_fully_connected(graph, "fc", x, CLASSES);
    must(graph_seal(graph));
    return graph;
}

/* ---- NCCL's part, with one rank ---- */

struct sums {
    struct ranks ranks;
    struct buckets buckets;
    struct exchange exchange; /* ops NULL: none */
};

static void open_sums(struct sums *sums, struct backend *backend)
{
    struct backend_memory memory;

    backend_memory(backend, &memory);
    must(buckets_by_layer(&sums->buckets, backend->config.graph, BUCKETS));
    assert_int_equal(sums->buckets.count, BUCKETS);
    must(exchange_open(&sums->exchange, &(struct exchange_config){.ranks = &sums->ranks,
                                                                  .gradients = memory.gradients,
                                                                  .on_device = true,
                                                                  .stream = memory.stream,
                                                                  .buckets = sums->buckets}));
}

/* ---- a job ---- */

struct job {
    struct backend backend;
    struct plugin_choice choice;
    struct graph *graph;
    struct sums sums;
    uint8_t *rows;
    int32_t labels[BATCH];
    float *host; /* an arena of parameters */
};

static void start(struct job *job, const char *text, bool late, bool on_host, bool nccl)
{
    *job = (struct job){.graph = network(), .sums.ranks = ranks_alone()};
    if (nccl)
        must(exchange_choose(&job->sums.exchange, "nccl", &job->sums.ranks));
    const struct backend_config config = {.graph = job->graph,
                                          .batch_size = BATCH,
                                          .training = true,
                                          .seed = 3,
                                          .gradients_on_host = on_host,
                                          .exchanged_by_host = on_host,
                                          .late = late,
                                          .enqueue = nccl ? exchange_ready : NULL,
                                          .enqueue_context = &job->sums.exchange};

    must(plugin_choose("backend", backend_registry, text, &job->choice));
    must(backend_open(&job->backend, &job->choice, &config));
    job->host = calloc(job->graph->parameter_floats, sizeof *job->host);
    assert_non_null(job->host);
    graph_initialise(job->graph, 1, job->host);
    must(backend_load(&job->backend, job->host, NULL, NULL));
    job->rows = backend_allocate(&job->backend, ROWS_BYTES);
    assert_non_null(job->rows);
    if (nccl)
        open_sums(&job->sums, &job->backend);
}

static void stop(struct job *job)
{
    if (job->sums.exchange.state) {
        must(exchange_finish(&job->sums.exchange));
        backend_forget(&job->backend);
        exchange_close(&job->sums.exchange, false);
        buckets_free(&job->sums.buckets);
    }
    backend_release(&job->backend, job->rows);
    backend_close(&job->backend);
    plugin_release(&job->choice);
    graph_destroy(job->graph);
    free(job->host);
}

/* Where a step is complete. */
static void update(struct job *job, uint64_t number, const struct backend_loss *loss)
{
    const struct kernel_update update = {.adapts = number % 2 != 0,
                                         .rate = 0.01,
                                         .rate_before = 0.01,
                                         .momentum = 0.9,
                                         .decay = 1e-4,
                                         .eta = 0.001,
                                         .gradient_scale = 1};
    struct backend_memory memory;

    if (!loss->update_due)
        return;
    backend_memory(&job->backend, &memory);
    if (!memory.on_device) /* as a host exchange does */
        for (uint64_t i = 0; i < job->graph->parameter_floats; i++)
            memory.gradients[i] *= 0.5f;
    must(backend_update(&job->backend, &update));
}

/* The batch is ours again once given, and is overwritten at once. */
static struct trainer_batch next_batch(struct job *job, uint64_t number)
{
    struct random random = random_start(number + 1);

    for (int i = 0; i < ROWS_BYTES; i++)
        job->rows[i] = (uint8_t)random_below(&random, 256);
    for (int i = 0; i < BATCH; i++)
        job->labels[i] = (int32_t)random_below(&random, CLASSES);
    return (struct trainer_batch){
        .rows = job->rows, .labels = job->labels, .count = BATCH, .step = number};
}

static void step(struct job *job, uint64_t number, struct backend_loss *loss)
{
    const struct trainer_batch batch = next_batch(job, number);

    must(backend_step(&job->backend, &batch, 0.1, NULL, NULL, loss));
    update(job, number, loss);
}

static void catch_up(struct job *job)
{
    struct backend_loss loss;
    int code;

    while ((code = backend_step(&job->backend, NULL, 0.1, NULL, NULL, &loss)) == 0 && loss.count) {
        assert_int_equal(loss.count, BATCH);
        update(job, STEPS, &loss);
    }
    must(code);
}

static void learn(const char *text, bool late, bool on_host, bool nccl)
{
    struct backend_loss loss;
    struct job job;
    float logits[BATCH * CLASSES];

    start(&job, text, late, on_host, nccl);
    for (uint64_t number = 0; number < STEPS; number++)
        step(&job, number, &loss);
    catch_up(&job);
    for (int i = 0; i < 6; i++) {
        const struct trainer_batch batch = next_batch(&job, STEPS);
        if (i == 3)
            catch_up(&job);
        must(backend_infer(&job.backend, &batch, i < 3 ? NULL : logits, i % 3 ? &loss : NULL));
    }
    must(backend_save(&job.backend, job.host, NULL, NULL, NULL));
    must(backend_load(&job.backend, job.host, NULL, NULL));
    step(&job, STEPS, &loss);
    catch_up(&job);
    stop(&job);
}

static void uploads_ahead(void **unused)
{
    learn("cuda:fp32,plans=none,ahead=2", true, false, false);
    learn("cuda:fp16,plans=none,ahead=1,graph=no", true, false, false);
}

static void gradients_on_the_host(void **unused)
{
    learn("cuda:fp32,plans=none", false, true, false);
    learn("cuda:fp32,plans=none,ahead=2", true, true, false);
}

static void what_nodes_put_out(void **unused)
{
    struct graph *graph = network();
    struct calibration calibration;
    struct plugin_choice choice;
    struct backend backend;
    struct backend_loss loss;
    uint8_t rows[ROWS_BYTES] = {0};
    const struct trainer_batch batch = {.rows = rows, .count = BATCH};
    float *weights = calloc(graph->parameter_floats, sizeof *weights);
    int code = 0;

    assert_non_null(weights);
    graph_initialise(graph, 1, weights);
    must(calibration_open(&calibration, graph));
    must(plugin_choose("backend", backend_registry, "cuda:fp32,plans=none", &choice));
    must(backend_open(
        &backend, &choice,
        &(struct backend_config){
            .graph = graph, .batch_size = BATCH, .late = true, .calibration = &calibration}));
    must(backend_load(&backend, weights, NULL, NULL));
    for (int i = 0; i < 5 && code == 0; i++)
        code = backend_infer(&backend, &batch, NULL, &loss);
    do
        code = code ? code : backend_step(&backend, NULL, 0, NULL, NULL, &loss);
    while (code == 0 && loss.count);
    must(code);
    assert_true(calibration.histograms[1].largest > 0);
    backend_close(&backend);
    plugin_release(&choice);
    calibration_close(&calibration);
    graph_destroy(graph);
    free(weights);
}

static void sums_on_another_stream(void **unused)
{
    void *module = dlopen(getenv("IOBENCH_NCCL_MODULE"), RTLD_NOW | RTLD_LOCAL);

    if (!module)
        skip(); /* there is no NCCL to build with */
    learn("cuda:fp32,plans=none,ahead=2", true, false, true);
    learn("cuda:fp32,plans=none,graph=no", false, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploads_ahead),
        cmocka_unit_test(gradients_on_the_host),
        cmocka_unit_test(what_nodes_put_out),
        cmocka_unit_test(sums_on_another_stream),
    };

    setenv("IOBENCH_CUDA_MODULE", "tests/cuda/ordered.so", 1);
    setenv("IOBENCH_NCCL_MODULE", "tests/cuda/ordered_nccl.so", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
