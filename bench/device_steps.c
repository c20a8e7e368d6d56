/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of one network on synthetic images, from the backend's own memory, with the upload of each
 * batch ahead of its step, as in `iobench train`.
 *
 *     device_steps [OPTION...] BACKEND NETWORK BATCH SECONDS [GOAL]     images/s; GOAL in images/s
 *     device_steps [OPTION...] --loss STEPS NETWORK BATCH BACKEND...    losses from one seed
 *
 * --side PIXELS: of the images. With --loss every backend must come within 1% of the first one's
 * losses. Fails if a backend is slower than it should be, say for want of an engine.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "trainer/backend.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_STEPS = 5, PATCHES = 8, BACKENDS_MAX = 8, STEPS_MAX = 1000, USAGE = 2 };

static const double agreement = 0.01, smoothing = 0.1;
/* A rate at which the loss falls smoothly: with 0.01 it wanders, and differences of rounding grow
 * to 1% in 14 steps. */
static const struct kernel_update sgd = {
    .rate = 0.003, .rate_before = 0.003, .momentum = 0.9, .decay = 1e-4, .gradient_scale = 1};

/* A backend with a network and a batch. */
struct course {
    struct graph *graph;
    struct plugin_choice choice;
    struct backend backend;
    struct trainer_batch batch;
    uint8_t *rows;
    int32_t *labels;
};

static void must(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench/device_steps: %s\n", fail_reason());
    exit(code == -ENODEV ? 77 : 1);
}

/* PATCHES x PATCHES of random colours, with noise: noise alone is the same to a network in all
 * images, whose differences are then what FP16 rounds away. */
static void paint(uint8_t *pixels, const struct graph_shape *shape, uint64_t image)
{
    for (uint32_t y = 0; y < shape->height; y++)
        for (uint32_t x = 0; x < shape->width; x++, pixels += 3) {
            const uint32_t patch =
                y * PATCHES / shape->height * PATCHES + x * PATCHES / shape->width;
            const uint64_t colour = random_mix(image * PATCHES * PATCHES + patch);
            const uint64_t noise = random_mix(~((image << 32) + (uint64_t)y * shape->width + x));
            for (int c = 0; c < 3; c++)
                pixels[c] = (uint8_t)((colour >> 8 * c & 0xff) * 3 / 4 + (noise >> 8 * c & 0x3f));
        }
}

static void make_images(struct course *course, uint32_t batch)
{
    const size_t bytes = batch * graph_node_floats(&course->graph->nodes[0]);

    course->rows = backend_allocate(&course->backend, bytes);
    course->labels = calloc(batch, sizeof *course->labels);
    must(course->rows && course->labels ? 0 : fail(ENOMEM, "out of memory"));
    for (uint32_t i = 0; i < batch; i++)
        paint(course->rows + i * bytes / batch, &course->graph->nodes[0].shape, i);
    for (uint32_t i = 0; i < batch; i++)
        course->labels[i] = (int32_t)(random_mix(i) % course->graph->classes);
    course->batch =
        (struct trainer_batch){.rows = course->rows, .labels = course->labels, .count = batch};
}

static void open_course(struct course *course, const char *backend, const struct network *network,
                        uint32_t side, uint32_t batch)
{
    *course = (struct course){.graph = network_build(network, side, network->classes)};
    must(course->graph ? 0 : -EINVAL);
    float *weights = malloc(course->graph->parameter_floats * sizeof *weights);
    must(weights ? 0 : fail(ENOMEM, "out of memory"));
    must(plugin_choose("backend", backend_registry, backend, &course->choice));
    must(plugin_usable(course->choice.plugin) ? -ENODEV : 0);
    must(backend_open(&course->backend, &course->choice,
                      &(struct backend_config){.graph = course->graph,
                                               .batch_size = batch,
                                               .training = true,
                                               .seed = 1,
                                               .late = true}));
    graph_initialise(course->graph, 1, weights);
    must(backend_load(&course->backend, weights, NULL, NULL));
    free(weights);
    make_images(course, batch);
}

/* Returns false if the backend was slower than it should be. */
static bool close_course(struct course *course)
{
    const char *notice = backend_notice(&course->backend);
    const bool good = !notice[0];

    if (!good)
        printf("FAILED: %s\n", notice);
    backend_release(&course->backend, course->rows);
    backend_close(&course->backend);
    plugin_release(&course->choice);
    graph_destroy(course->graph);
    free(course->labels);
    return good;
}

static void step(struct course *course, struct backend_loss *loss)
{
    must(backend_step(&course->backend, &course->batch, smoothing, NULL, NULL, loss));
    must(backend_update(&course->backend, &sgd));
    course->batch.step++;
}

/* ---- losses ---- */

static void run_losses(struct course *course, uint64_t steps, double *losses)
{
    uint64_t known = 0;
    struct backend_loss loss;

    for (uint64_t i = 0; i < steps; i++) {
        step(course, &loss);
        if (loss.count)
            losses[known++] = loss.loss;
    }
    while (known < steps &&
           backend_step(&course->backend, NULL, smoothing, NULL, NULL, &loss) == 0 && loss.count)
        losses[known++] = loss.loss;
    must(known == steps ? 0
                        : fail(EIO, "a backend reports %llu losses of %llu steps",
                               (unsigned long long)known, (unsigned long long)steps));
}

static int compare_losses(const struct network *network, uint32_t side, uint32_t batch,
                          uint64_t steps, char *const *backends, uint32_t count)
{
    static double losses[BACKENDS_MAX][STEPS_MAX];
    bool good = true;

    printf("losses of %s at %u pixels, batch %u\n", network->name, side, batch);
    for (uint32_t i = 0; i < count; i++) {
        struct course course;
        double worst = 0;
        open_course(&course, backends[i], network, side, batch);
        run_losses(&course, steps, losses[i]);
        good = close_course(&course) && good;
        for (uint64_t j = 0; j < steps; j++) {
            const double off = fabs(losses[i][j] / losses[0][j] - 1);
            printf("%s%.4f", j ? " " : "", losses[i][j]);
            if (!(off <= worst)) /* a NaN is the worst */
                worst = off;
        }
        const bool agrees = worst <= agreement;
        printf("\n%s: %.3f%% from %s at most%s\n", backends[i], worst * 100, backends[0],
               agrees ? "" : ": FAILED");
        good = good && agrees;
    }
    return good ? 0 : 1;
}

/* ---- rates ---- */

static void add(struct trainer_times *sum, const struct trainer_times *times)
{
    sum->upload_ns += times->upload_ns;
    sum->copy_ns += times->copy_ns;
    sum->compute_ns += times->compute_ns;
    sum->update_ns += times->update_ns;
}

static void catch_up(struct course *course, struct trainer_times *sum)
{
    struct backend_loss loss;
    int code;

    while ((code = backend_step(&course->backend, NULL, smoothing, NULL, NULL, &loss)) == 0 &&
           loss.count)
        add(sum, &loss.times);
    must(code);
}

static int measure_rate(const char *backend, const struct network *network, uint32_t side,
                        uint32_t batch, double seconds, double goal)
{
    uint64_t start_ns = clock_now_ns(), steps = 0;
    struct trainer_times times = {0}, unused = {0};
    struct backend_memory memory;
    struct backend_loss loss;
    struct course course;
    double took_s = 0;

    open_course(&course, backend, network, side, batch);
    const double opened_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    for (int i = 0; i < WARM_STEPS; i++)
        step(&course, &loss);
    catch_up(&course, &unused);
    for (start_ns = clock_now_ns(); took_s < seconds || steps == 0; steps++) {
        step(&course, &loss);
        add(&times, &loss.times);
        took_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    }
    catch_up(&course, &times);
    took_s = (double)(clock_now_ns() - start_ns) * 1e-9;
    const double rate = (double)(steps * batch) / took_s, each = 1e-6 / (double)steps;
    backend_memory(&course.backend, &memory);
    printf(
        "%s on %s, batch %u: %.0f images/s; a step %.2f ms (by the device: waited for the upload "
        "%.2f, compute %.2f, update %.2f; the upload itself %.2f); opened in %.1f s; %.1f GB of "
        "tensors, %.2f of workspace, %.2f of batches\n",
        network->name, backend, batch, rate, took_s * 1e3 / (double)steps,
        (double)times.upload_ns * each, (double)times.compute_ns * each,
        (double)times.update_ns * each, (double)times.copy_ns * each, opened_s,
        (double)memory.activation_bytes * 1e-9, (double)memory.workspace_bytes * 1e-9,
        (double)memory.batch_bytes * 1e-9);
    if (goal > 0)
        printf("claim device_%s_%u %.0f images/s goal >=%.0f %s\n", network->name, batch, rate,
               goal, rate >= goal ? "ok" : "short");
    return close_course(&course) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"loss", required_argument, NULL, 'l'}, {"side", required_argument, NULL, 's'}, {0}};
    uint64_t steps = 0;
    uint32_t side = 0;
    int option;

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1)
        if (option == 'l')
            steps = strtoull(optarg, NULL, 10);
        else if (option == 's')
            side = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return USAGE;
    char *const *rest = argv + optind;
    const int count = argc - optind;
    if (steps > STEPS_MAX || count < (steps ? 3 : 4) || (steps && count - 2 > BACKENDS_MAX)) {
        fprintf(stderr,
                "usage: device_steps [--side PIXELS] BACKEND NETWORK BATCH SECONDS [GOAL]\n"
                "       device_steps [--side PIXELS] --loss STEPS NETWORK BATCH BACKEND...\n");
        return USAGE;
    }
    const struct network *network = network_find(rest[steps ? 0 : 1]);
    const uint32_t batch = (uint32_t)strtoul(rest[steps ? 1 : 2], NULL, 10);
    must(network ? 0 : -EINVAL);
    must(batch ? 0 : fail(EINVAL, "no batch of %s", rest[steps ? 1 : 2]));
    side = side ? side : network->side;
    if (steps)
        return compare_losses(network, side, batch, steps, rest + 2, (uint32_t)count - 2);
    return measure_rate(rest[0], network, side, batch, strtod(rest[3], NULL),
                        count > 4 ? strtod(rest[4], NULL) : 0);
}
