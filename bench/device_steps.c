/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps per second of one network on one backend, on synthetic images: forward, backward, update,
 * and the upload of each batch ahead of its step, from the backend's own memory, as in `iobench
 * train`. Arguments: backend, network, batch, seconds, goal in images/s (0: none).
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "trainer/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_STEPS = 5 };

static void must(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench/device_steps: %s\n", fail_reason());
    exit(code == -ENODEV ? 77 : 1);
}

struct images {
    uint8_t *rows;
    int32_t *labels;
};

static struct images make_images(struct backend *backend, const struct network *network,
                                 uint32_t batch)
{
    const size_t bytes = (size_t)batch * network->side * network->side * 3;
    struct images images = {backend_allocate(backend, bytes), calloc(batch, sizeof(int32_t))};

    must(images.rows && images.labels ? 0 : fail(ENOMEM, "out of memory"));
    for (size_t i = 0; i < bytes; i++)
        images.rows[i] = (uint8_t)(random_mix(i / 8) >> i % 8 * 8);
    for (uint32_t i = 0; i < batch; i++)
        images.labels[i] = (int32_t)(random_mix(i) % network->classes);
    return images;
}

static void open_backend(struct backend *backend, struct plugin_choice *choice, const char *text,
                         const struct graph *graph, uint32_t batch)
{
    float *weights = malloc(graph->parameter_floats * sizeof *weights);

    must(weights ? 0 : fail(ENOMEM, "out of memory"));
    must(plugin_choose("backend", backend_registry, text, choice));
    must(plugin_usable(choice->plugin) ? -ENODEV : 0);
    must(backend_open(
        backend, choice,
        &(struct backend_config){
            .graph = graph, .batch_size = batch, .training = true, .seed = 1, .late = true}));
    graph_initialise(graph, 1, weights);
    must(backend_load(backend, weights, NULL, NULL));
    free(weights);
}

static void add(struct backend_times *sum, const struct backend_times *times)
{
    sum->upload_ns += times->upload_ns;
    sum->copy_ns += times->copy_ns;
    sum->compute_ns += times->compute_ns;
    sum->update_ns += times->update_ns;
}

/* Drains all steps; sum may be NULL. */
static int catch_up(struct backend *backend, struct backend_times *sum)
{
    struct backend_loss loss;
    int code;

    while ((code = backend_finish(backend, 0.1, NULL, NULL, &loss)) == 1)
        if (sum)
            add(sum, &loss.times);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: device_steps BACKEND NETWORK BATCH SECONDS [GOAL]\n");
        return 2;
    }
    const struct network *network = network_find(argv[2]);
    const uint32_t batch = (uint32_t)strtoul(argv[3], NULL, 10);
    const double seconds = strtod(argv[4], NULL), goal = argc > 5 ? strtod(argv[5], NULL) : 0;
    const struct backend_update update = {
        .rate = 0.01, .rate_before = 0.01, .momentum = 0.9, .decay = 1e-4, .gradient_scale = 1};
    struct plugin_choice choice;
    struct backend backend;
    struct backend_times times = {0};
    uint64_t start_ns = clock_now_ns(), steps = 0;

    must(network && batch ? 0 : -EINVAL);
    struct graph *graph = network_build(network, network->side, network->classes);
    must(graph ? 0 : -EINVAL);
    open_backend(&backend, &choice, argv[1], graph, batch);
    const struct images images = make_images(&backend, network, batch);
    const double opened_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    for (uint64_t step = 0;; step++) {
        const struct backend_batch given = {
            .rows = images.rows, .labels = images.labels, .count = batch, .step = step};
        struct backend_loss loss;
        if (step == WARM_STEPS) {
            must(catch_up(&backend, NULL));
            start_ns = clock_now_ns();
        }
        must(backend_step(&backend, &given, 0.1, NULL, NULL, &loss));
        must(backend_update(&backend, &update));
        if (step < WARM_STEPS)
            continue;
        add(&times, &loss.times);
        steps++;
        if ((double)(clock_now_ns() - start_ns) * 1e-9 >= seconds)
            break;
    }
    must(catch_up(&backend, &times));
    const double took_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    const double rate = (double)(steps * batch) / took_s, each = 1e-6 / (double)steps;
    struct backend_memory memory;
    backend_memory(&backend, &memory);
    printf(
        "%s on %s, batch %u: %.0f images/s; a step %.2f ms (by the device: waited for the upload "
        "%.2f, compute %.2f, update %.2f; the upload itself %.2f); opened in %.1f s; %.1f GB of "
        "tensors, %.2f of workspace, %.2f of batches\n",
        network->name, argv[1], batch, rate, took_s * 1e3 / (double)steps,
        (double)times.upload_ns * each, (double)times.compute_ns * each,
        (double)times.update_ns * each, (double)times.copy_ns * each, opened_s,
        (double)memory.activation_bytes * 1e-9, (double)memory.workspace_bytes * 1e-9,
        (double)memory.batch_bytes * 1e-9);
    if (goal > 0)
        printf("claim device_%s_%u %.0f images/s goal >=%.0f %s\n", network->name, batch, rate,
               goal, rate >= goal ? "ok" : "short");
    backend_release(&backend, images.rows);
    backend_close(&backend);
    plugin_release(&choice);
    graph_destroy(graph);
    free(images.labels);
    return 0;
}
