/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench plan: the steps that a backend runs for one batch of a network, with the time that a
 * roofline predicts and, measured here, the time they take.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "report/words.h"
#include "trainer/accelerator.h"
#include "trainer/backend.h"
#include "trainer/exchange.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct plan_settings {
    char *backend, *precision, *gpu, *json;
    uint64_t side, classes, batch_size, buckets, threads, passes;
    double tflops, bandwidth;
    bool infers;
};

#define FIELD(field) .offset = offsetof(struct plan_settings, field)
/* clang-format off: a row or two each */
static const struct option_spec plan_options[] = {
    {"backend", 0, OPTION_TEXT, FIELD(backend), .fallback = "auto", .metavar = "NAME",
     .section = "The network", .summary = "compute backend: cuda, cpu or reference"},
    {"precision", 0, OPTION_TEXT, FIELD(precision), .metavar = "NAME",
     .summary = "fp32, tf32, fp16, bf16 or int8; default: the backend's own"},
    {"infer", 0, OPTION_FLAG, FIELD(infers), .fallback = "no",
     .summary = "inference instead of training"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "64", .minimum = 1,
     .maximum = 1 << 20, .summary = "images per batch"},
    {"size", 0, OPTION_COUNT, FIELD(side), .fallback = "auto", .zero = "auto", .maximum = 4096,
     .summary = "image side in pixels; auto: the network's own"},
    {"classes", 0, OPTION_COUNT, FIELD(classes), .fallback = "auto", .zero = "auto",
     .maximum = 1 << 24, .summary = "number of classes; auto: the network's own"},
    {"buckets", 0, OPTION_COUNT, FIELD(buckets), .fallback = "4", .minimum = 1, .maximum = 1024,
     .summary = "number of gradient buckets if several ranks train: see train --buckets"},
    {"compute-threads", 0, OPTION_COUNT, FIELD(threads), .fallback = "auto", .zero = "auto",
     .maximum = 4096, .summary = "compute threads of backend cpu; auto: one per CPU"},

    {"gpu", 0, OPTION_TEXT, FIELD(gpu), .metavar = "NAME", .section = "Time",
     .summary = "predict times on this GPU: v100, a100, h100 or h200; cuda plans for it"},
    {"tflops", 0, OPTION_REAL, FIELD(tflops), .fallback = "0", .maximum = 1e9,
     .summary = "predict times with this peak compute rate, in TFLOPS"},
    {"bandwidth", 0, OPTION_REAL, FIELD(bandwidth), .fallback = "0", .maximum = 1e9,
     .summary = "and this peak memory bandwidth, in GB/s"},
    {"measure", 0, OPTION_COUNT, FIELD(passes), .fallback = "0", .implied = "5", .maximum = 100000,
     .metavar = "N", .reach = OPTION_CACHES,
     .summary = "run N batches here and show the mean time of each step"},

    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .begins = "{\"network\": \"\", \"backend\"", .implied = "-", .section = "Output",
     .summary = "write JSON instead; without FILE to standard output"},
    {0},
};
/* clang-format on */
#undef FIELD

struct plan_view {
    const struct network *network;
    const char *backend, *precision;
    struct schedule_request request;
    struct schedule schedule;
    struct buckets buckets;          /* of training */
    double flops_per_s, bytes_per_s; /* peaks to predict with; 0: none */
    const char *peaks;               /* where they come from */
};

struct total {
    uint32_t steps;
    uint64_t read_bytes, write_bytes, workspace_bytes; /* workspace_bytes: the maximum */
    double flops, predicted_ns, measured_ns;
};

static void add_step(const struct plan_view *view, const struct schedule_step *step,
                     struct total *total)
{
    total->steps++;
    total->read_bytes += step->read_bytes;
    total->write_bytes += step->write_bytes;
    if (step->workspace_bytes > total->workspace_bytes)
        total->workspace_bytes = step->workspace_bytes;
    total->flops += step->flops;
    if (view->flops_per_s > 0)
        total->predicted_ns += schedule_predict_ns(step, view->flops_per_s, view->bytes_per_s);
    total->measured_ns += step->measured_ns;
}

/* Add up totals by phase; the last total is that of a batch: everything except what is done once.
 */
static void add_up_steps(const struct plan_view *view, struct total totals[SCHEDULE_PHASES + 1])
{
    memset(totals, 0, (SCHEDULE_PHASES + 1) * sizeof *totals);
    for (uint32_t i = 0; i < view->schedule.count; i++) {
        const struct schedule_step *step = &view->schedule.steps[i];
        add_step(view, step, &totals[step->phase]);
        if (step->phase != SCHEDULE_ONCE)
            add_step(view, step, &totals[SCHEDULE_PHASES]);
    }
}

/* A bucket of gradients: what completes it, and what its exchange can hide behind. */
struct sent {
    uint32_t node; /* the layer whose gradients complete it */
    uint32_t step; /* its last one */
    uint64_t floats;
    struct total behind; /* the steps left of the backward pass */
};

static struct sent sent_of(const struct plan_view *view, uint32_t number)
{
    const struct graph *graph = view->request.graph;
    const uint64_t end = buckets_start(&view->buckets, number + 1);
    struct sent sent = {.node = graph->node_count - 1,
                        .floats = buckets_floats(&view->buckets, number)};

    while (sent.node > 0 && graph_final_floats(graph, sent.node) < end)
        sent.node--;
    for (uint32_t i = 0; i < view->schedule.count; i++) {
        const struct schedule_step *step = &view->schedule.steps[i];
        if (step->phase == SCHEDULE_BACKWARD && step->node >= sent.node) {
            sent.step = i;
            sent.behind = (struct total){0};
        } else if (step->phase == SCHEDULE_BACKWARD) {
            add_step(view, step, &sent.behind);
        }
    }
    return sent;
}

static const char *node_name(const struct plan_view *view, const struct schedule_step *step)
{
    return step->node == UINT32_MAX ? "all parameters"
                                    : view->request.graph->nodes[step->node].name;
}

/* ---- the table ---- */

static int wider(int width, const char *text)
{
    const int length = (int)strlen(text);

    return length > width ? length : width;
}

static void print_time(double ns, double unit_ns)
{
    if (ns > 0)
        printf("%11.3f", ns / unit_ns);
    else
        printf("%11s", "-");
}

/* The share of the predicted rate that a step reaches; 0: not known. */
static double roof_share(double predicted, double measured)
{
    return measured > 0 ? predicted / measured : 0;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Print a number with as many of these decimals as leave a blank before it. */
static void print_number(int width, int decimals, double value)
{
    while (decimals > 0 && snprintf(NULL, 0, "%.*f", decimals, value) >= width)
        decimals--;
    printf("%*.*f", width, decimals, value);
}

/* Read, written and workspace MiB, GFLOP, times in a unit, and the share of the roof. */
static void print_figures(const struct total *total, const int widths[4], int decimals,
                          double unit_ns)
{
    print_number(widths[0], decimals, mib(total->read_bytes));
    print_number(widths[1], decimals, mib(total->write_bytes));
    print_number(widths[2], decimals, mib(total->workspace_bytes));
    print_number(widths[3], decimals + 1, total->flops * 1e-9);
    print_time(total->predicted_ns, unit_ns);
    print_time(total->measured_ns, unit_ns);
    const double share = roof_share(total->predicted_ns, total->measured_ns);
    if (share > 0)
        printf("%6.1f%%\n", share * 100);
    else
        printf("%7s\n", "-");
}

enum { NUMBER_WIDTH = 7, FIGURES_WIDTH = 71 };

static void print_plan(const struct plan_view *view)
{
    const struct graph_shape *shape = &view->request.graph->nodes[0].shape;

    words_printf(stdout, "", 0, "%s, %s, %s, %s: batches of %u images of %u x %u",
                 view->network->name, view->backend, view->precision,
                 view->request.training ? "training" : "inference", view->request.batch_size,
                 shape->width, shape->height);
    if (*view->schedule.library)
        words_printf(stdout, "", 0, "Engines of %s", view->schedule.library);
    if (view->flops_per_s > 0)
        words_printf(stdout, "", 0, "Predicted with %.4g TFLOPS and %.4g GB/s (%s)",
                     view->flops_per_s * 1e-12, view->bytes_per_s * 1e-9, view->peaks);
    /* List the steps by phase, numbered in the order in which they run. */
    int node = 4, operation = 9, engine = 6, fused = 5;
    for (uint32_t i = 0; i < view->schedule.count; i++) {
        const struct schedule_step *step = &view->schedule.steps[i];
        node = wider(node, node_name(view, step));
        operation = wider(operation, step->operation);
        engine = wider(engine, step->engine);
        fused = wider(fused, step->fused);
    }
    const bool narrow = /* texts and figures have lines of their own */
        NUMBER_WIDTH + node + operation + engine + fused + 6 + FIGURES_WIDTH >
        (int)terminal_width(STDOUT_FILENO);
    if (narrow)
        printf("\n%5s  node: operation by engine\n%*s", "step", NUMBER_WIDTH, "");
    else
        printf("\n%5s  %-*s  %-*s  %-*s  %-*s", "step", node, "node", operation, "operation",
               engine, "engine", fused, "fused");
    printf("%9s%10s%14s%9s%11s%11s%7s\n", "read MiB", "write MiB", "workspace MiB", "GFLOP",
           "predict us", "measure us", "roof");
    for (int phase = 0; phase < SCHEDULE_PHASES; phase++) {
        bool begun = false;
        for (uint32_t i = 0; i < view->schedule.count; i++) {
            if ((int)view->schedule.steps[i].phase != phase)
                continue;
            if (!begun)
                printf("%s\n", schedule_phases[phase]);
            begun = true;
            const struct schedule_step *step = &view->schedule.steps[i];
            char before[16];
            if (narrow) {
                snprintf(before, sizeof before, "%5u", i + 1);
                words_printf(stdout, before, NUMBER_WIDTH, "%s: %s by %s%s%s",
                             node_name(view, step), step->operation, step->engine,
                             *step->fused ? "; fused: " : "", step->fused);
                printf("%*s", NUMBER_WIDTH, "");
            } else {
                printf("%5u  %-*s  %-*s  %-*s  %-*s", i + 1, node, node_name(view, step), operation,
                       step->operation, engine, step->engine, fused, step->fused);
            }
            struct total one = {0};
            add_step(view, step, &one);
            print_figures(&one, (const int[]){9, 10, 14, 9}, 3, 1e3);
        }
    }
    struct total totals[SCHEDULE_PHASES + 1];
    add_up_steps(view, totals);
    printf("\n  %-8s%5s%9s%9s%10s%8s\n", "", "", "read", "write", "workspace", "");
    printf("  %-8s%5s%9s%9s%10s%8s%11s%11s%7s\n", "", "steps", "MiB", "MiB", "MiB", "GFLOP",
           "predict ms", "measure ms", "roof");
    for (int i = 0; i <= SCHEDULE_PHASES; i++) {
        const struct total *row = &totals[i];
        if (row->steps == 0)
            continue;
        printf("  %-8s%5u", i < SCHEDULE_PHASES ? schedule_phases[i] : "batch", row->steps);
        print_figures(row, (const int[]){9, 9, 10, 8}, 2, 1e6);
    }
    if (view->buckets.count == 0)
        return;
    printf("\n  %-8s%5s%9s%11s%11s  %s\n", "bucket", "sent", "", "left", "left", "");
    printf("  %-8s%5s%9s%11s%11s  %s\n", "", "after", "MiB", "predict ms", "measure ms",
           "complete with");
    for (uint32_t i = 0; i < view->buckets.count; i++) {
        const struct sent sent = sent_of(view, i);
        printf("  %-8u%5u", i + 1, sent.step + 1);
        print_number(9, 2, mib(sent.floats * sizeof(float)));
        /* Nothing is left after the last bucket. */
        const double left[] = {view->flops_per_s > 0 ? sent.behind.predicted_ns : NAN,
                               view->request.passes > 0 ? sent.behind.measured_ns : NAN};
        for (int k = 0; k < 2; k++)
            if (isnan(left[k]))
                printf("%11s", "-");
            else
                printf("%11.3f", left[k] * 1e-6);
        printf("  %s\n", view->request.graph->nodes[sent.node].name);
    }
}

/* ---- JSON ---- */

static json_t *json_known(double number)
{
    return number > 0 ? json_number(number) : json_null();
}

static void put_figures(json_t *object, const struct total *total)
{
    json_put_count(object, "read_bytes", total->read_bytes);
    json_put_count(object, "write_bytes", total->write_bytes);
    json_put_count(object, "workspace_bytes", total->workspace_bytes);
    json_object_set_new(object, "flops", json_number(total->flops));
    json_object_set_new(object, "predicted_ns", json_known(total->predicted_ns));
    json_object_set_new(object, "measured_ns", json_known(total->measured_ns));
    json_object_set_new(object, "roof_share",
                        json_known(roof_share(total->predicted_ns, total->measured_ns)));
}

/* ---- the command ---- */

/* Check everything that the user may have specified wrongly. */
static int check_choices(const struct invocation *invocation, struct plugin_choice *backend,
                         struct plan_view *view)
{
    const struct plan_settings *settings = invocation->settings;
    const bool int8 = settings->precision && strcmp(settings->precision, "int8") == 0;
    int code = backend_choose(settings->backend, int8 ? NULL : settings->precision, backend);

    if (code)
        return code;
    if (int8 && !settings->infers)
        return fail(EINVAL, "--precision int8 requires --infer");
    view->network = network_find(invocation->count ? invocation->operands[0] : "resnet50");
    if (!view->network)
        return -EINVAL;
    view->backend = backend->plugin->name;
    view->precision = int8 ? "int8" : backend_precision(backend);
    view->request.batch_size = (uint32_t)settings->batch_size;
    view->request.training = !settings->infers;
    view->request.int8 = int8;
    view->request.passes = (uint32_t)settings->passes;
    view->request.threads = (uint32_t)settings->threads;
    const struct accelerator *gpu = settings->gpu ? accelerator_find(settings->gpu) : NULL;
    if (settings->gpu && !gpu)
        return fail(EINVAL, "--gpu: %s", fail_reason());
    if ((settings->tflops > 0) != (settings->bandwidth > 0))
        return fail(EINVAL, "--tflops and --bandwidth must be given together");
    if (gpu && settings->tflops > 0)
        return fail(EINVAL, "only one of --gpu and --tflops can be given");
    if (settings->tflops > 0) {
        view->flops_per_s = settings->tflops * 1e12;
        view->bytes_per_s = settings->bandwidth * 1e9;
        view->peaks = "as given";
    } else if (gpu) {
        view->flops_per_s = accelerator_flops_per_s(gpu, view->precision);
        view->bytes_per_s = gpu->memory_bytes_per_s;
        view->peaks = gpu->peak_source;
        view->request.device = gpu->capability;
        if (!(view->flops_per_s > 0))
            return fail(EINVAL, "--gpu: %s does not support %s; choose another --precision",
                        gpu->title, view->precision);
    }
    return 0;
}

static int make_plan(const struct plan_settings *settings, const struct plugin_choice *backend,
                     struct graph *graph, struct plan_view *view)
{
    int code = graph ? graph->code : -EINVAL;

    if (code == 0) {
        view->request.graph = graph;
        code = backend_schedule(backend, &view->request, &view->schedule);
    }
    if (code == 0 && view->request.training)
        code = buckets_by_layer(&view->buckets, graph, (uint32_t)settings->buckets);
    if (view->schedule.flops_per_s > 0 && !view->peaks) {
        view->flops_per_s = view->schedule.flops_per_s;
        view->bytes_per_s = view->schedule.bytes_per_s;
        view->peaks = view->schedule.peaks;
    }
    if (code == 0 && settings->json) {
        const struct schedule_request *request = &view->request;
        json_t *steps = json_array();
        for (uint32_t i = 0; i < view->schedule.count; i++) {
            const struct schedule_step *step = &view->schedule.steps[i];
            json_t *row =
                json_pack("{s:s, s:o, s:s, s:o, s:o}", "phase", schedule_phases[step->phase],
                          "node", json_text(node_name(view, step)), "operation", step->operation,
                          "engine", json_text(step->engine), "fused", json_text(step->fused));
            struct total one = {0};
            add_step(view, step, &one);
            put_figures(row, &one);
            json_array_append_new(steps, row);
        }
        struct total totals[SCHEDULE_PHASES + 1];
        json_t *rows = json_object();
        add_up_steps(view, totals);
        for (int i = 0; i <= SCHEDULE_PHASES; i++) {
            if (totals[i].steps == 0)
                continue;
            json_t *row = json_pack("{s:I}", "steps", (json_int_t)totals[i].steps);
            put_figures(row, &totals[i]);
            json_object_set_new(rows, i < SCHEDULE_PHASES ? schedule_phases[i] : "batch", row);
        }
        json_t *buckets = json_array();
        for (uint32_t i = 0; i < view->buckets.count; i++) {
            const struct sent sent = sent_of(view, i);
            json_array_append_new(
                buckets,
                json_pack(
                    "{s:I, s:o, s:I, s:o, s:o}", "bytes", (json_int_t)(sent.floats * sizeof(float)),
                    "complete_with", json_text(view->request.graph->nodes[sent.node].name),
                    "sent_after", (json_int_t)sent.step + 1, "left_predicted_ns",
                    view->flops_per_s > 0 ? json_number(sent.behind.predicted_ns) : json_null(),
                    "left_measured_ns",
                    view->request.passes > 0 ? json_number(sent.behind.measured_ns) : json_null()));
        }
        code = json_file_write(
            settings->json,
            json_pack("{s:s, s:s, s:s, s:o, s:b, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
                      "network", view->network->name, "backend", view->backend, "precision",
                      view->precision, "library",
                      *view->schedule.library ? json_text(view->schedule.library) : json_null(),
                      "training", request->training, "batch_size", (json_int_t)request->batch_size,
                      "side", (json_int_t)request->graph->nodes[0].shape.height, "classes",
                      (json_int_t)request->graph->classes, "peak_flops_per_s",
                      json_known(view->flops_per_s), "peak_bytes_per_s",
                      json_known(view->bytes_per_s), "peak_source",
                      view->peaks ? json_text(view->peaks) : json_null(), "measured_passes",
                      (json_int_t)request->passes, "phases", rows, "buckets", buckets, "steps",
                      steps));
    } else if (code == 0)
        print_plan(view);
    return code;
}

static int plan_run(const struct invocation *invocation)
{
    const struct plan_settings *settings = invocation->settings;
    struct plugin_choice backend = {0};
    struct plan_view view = {0};
    int status;

    if (check_choices(invocation, &backend, &view)) {
        status = command_misused(invocation);
    } else {
        const uint64_t side = settings->side ? settings->side : view.network->side;
        const uint64_t classes = settings->classes ? settings->classes : view.network->classes;
        struct graph *graph = network_build(view.network, (uint32_t)side, (uint32_t)classes);
        status =
            make_plan(settings, &backend, graph, &view) ? command_failed(invocation) : COMMAND_OK;
        buckets_free(&view.buckets);
        schedule_free(&view.schedule);
        graph_destroy(graph);
    }
    plugin_release(&backend);
    return status;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "list the steps that compute a network, with their times",
    .operands = "[NETWORK]",
    .operands_maximum = 1,
    .description =
        "Lists the steps that a backend runs for one batch: the operation, the kernel or library "
        "engine that computes it, what is fused into it, bytes read and written, workspace and "
        "floating-point operations (two per multiply-accumulate). With the peak rates of a GPU "
        "(--gpu) or with given ones it predicts each step's time by the roofline model: the longer "
        "of computing and moving the bytes. --measure runs the steps on this machine. Nothing is "
        "computed otherwise, and the device need not be here. Steps under 'once' run when weights "
        "are loaded. For training it also shows where the gradients are cut into buckets, after "
        "which step each is sent, and the time of the backward steps left, behind which its "
        "exchange hides.",
    .examples =
        "iobench plan resnet50 --backend cpu --measure\tsteps of ResNet-50 on this machine\n"
        "iobench plan resnet50 --backend cuda --gpu h100\twhat an H100 would run\n"
        "iobench plan vgg16 --infer --batch-size 1 --json plan.json\tinference, as JSON\n",
    .options = plan_options,
    .settings_size = sizeof(struct plan_settings),
    .is_confined = true,
    .run = plan_run,
};
