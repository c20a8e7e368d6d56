/* SPDX-License-Identifier: Apache-2.0
 * Whole programs: made from a model's graph, and listed as `iobench plan` prints them. */
#include "trainer/cuda/build.h"

#include "base/fail.h"
#include "base/memory.h"
#include "trainer/cuda/fuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct cuda_program *cuda_compile(struct cuda_model *model, uint32_t count, bool training)
{
    const uint32_t node_count = model->graph->node_count;
    struct cuda_program *program = memory_zeroed(sizeof *program);
    struct cuda_builder builder = {.program = program, .model = model};
    struct cuda_chain *chains = memory_array(node_count, sizeof *chains);
    int code = program && chains ? 0 : -ENOMEM;

    for (uint32_t i = 0; code == 0 && model->quantised && i < node_count; i++)
        if (model->quantised[i].in_int8)
            chains[i] = cuda_chain_of(model, i);
    if (code == 0) {
        *program = (struct cuda_program){.model = model, .count = count, .training = training};
        code = cuda_blocks_make(
            &builder.blocks,
            &(struct cuda_blocks_config){.graph = model->graph,
                                         .training = training,
                                         .keeps_nodes = model->config.calibration != NULL,
                                         .chains = chains});
    }
    free(chains);
    if (code == 0)
        code = cuda_fuse(&builder.blocks, model, count, training);
    if (code == 0) {
        builder.values = memory_array(builder.blocks.count, sizeof *builder.values);
        code = builder.values ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; code == 0 && i < builder.blocks.count; i++)
        builder.values[i] = (struct cuda_value){.buffer = CUDA_NONE,
                                                .int8 = CUDA_NONE,
                                                .winners = CUDA_NONE,
                                                .open = CUDA_NONE,
                                                .dz = CUDA_NONE};
    if (code == 0) {
        cuda_emit_forward(&builder);
        if (training && !builder.code)
            cuda_emit_backward(&builder);
        code = builder.code;
    }
    free(builder.values);
    if (code == 0)
        code = cuda_program_place(program);
    cuda_blocks_free(&builder.blocks);
    if (code) {
        cuda_program_destroy(program);
        return NULL;
    }
    return program;
}

/* ---- the schedule ---- */

static void name_fusions(uint32_t fusion, char *text, size_t bytes)
{
    static const struct {
        uint32_t fusion;
        const char *name;
    } names[] = {{DNN_PROLOGUE | DNN_SUMMED | DNN_DUAL, "two BNs, add, ReLU before"},
                 {DNN_PROLOGUE | DNN_SUMMED, "BN, add, ReLU before"},
                 {DNN_PROLOGUE, "BN, ReLU before"},
                 {DNN_NORM | DNN_SUMMED | DNN_DUAL, "ReLU, add, two BNs backward"},
                 {DNN_NORM | DNN_SUMMED, "ReLU, add, BN backward"},
                 {DNN_NORM, "ReLU, BN backward"},
                 {DNN_SCALED, "BN"},
                 {DNN_BIASED, "bias"},
                 {DNN_ADDED, "add"},
                 {DNN_RECTIFIED, "ReLU"},
                 {DNN_STATISTICS, "BN statistics"}};
    size_t used = 0;

    if (fusion & DNN_SCALED) /* its bias is BN's */
        fusion &= ~(uint32_t)DNN_BIASED;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names && used < bytes; i++) {
        if ((fusion & names[i].fusion) != names[i].fusion)
            continue;
        used +=
            (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", names[i].name);
        fusion &= ~names[i].fusion;
    }
}

/* Tensors are operands; BN kernels also read and write vectors of one float per channel. */
static void describe_kernel(const struct cuda_program *program, const struct cuda_step *step,
                            struct schedule_step *row)
{
    static const struct {
        const struct cuda_kernel *kernel;
        uint32_t reads, writes;
    } vectors[] = {{&cuda_kernel_statistics, 4, 6},    {&cuda_kernel_norm_finish, 6, 10},
                   {&cuda_kernel_norm_infer, 4, 2},    {&cuda_kernel_affine, 2, 0},
                   {&cuda_kernel_bias, 1, 0},          {&cuda_kernel_stem, 2, 0},
                   {&cuda_kernel_norm_backward, 5, 5}, {&cuda_kernel_norm_apply, 3, 0},
                   {&cuda_kernel_stem_backward, 5, 5}, {&cuda_kernel_bias_gradient, 0, 1}};
    const struct graph_node *node = &program->model->graph->nodes[step->node];

    for (uint32_t i = 0; i < step->operand_count; i++)
        *(step->operands[i].written ? &row->write_bytes : &row->read_bytes) +=
            program->buffers[step->operands[i].buffer].bytes;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (vectors[i].kernel == step->kernel) {
            row->read_bytes += (uint64_t)vectors[i].reads * node->shape.channels * sizeof(float);
            row->write_bytes += (uint64_t)vectors[i].writes * node->shape.channels * sizeof(float);
        }
    if (step->kernel == &cuda_kernel_input)
        row->read_bytes += (uint64_t)program->count * node->shape.height * node->shape.width * 3;
    if ((step->kernel == &cuda_kernel_affine && step->affine.with.relu) ||
        (step->kernel == &cuda_kernel_bias && step->affine.with.relu) ||
        (step->kernel == &cuda_kernel_sum && step->sum.relu))
        snprintf(row->fused, sizeof row->fused, "%sReLU",
                 step->kernel != &cuda_kernel_affine || step->operand_count < 3 ? ""
                 : step->affine.with.other_scale                                ? "BN, add, "
                                                                                : "add, ");
}

int cuda_list_steps(const struct cuda_program *program, uint32_t passes, double update_ns,
                    struct schedule *schedule)
{
    enum schedule_phase phase = SCHEDULE_FORWARD;
    int code = 0;

    dnn_name_library(schedule->library, sizeof schedule->library);
    for (uint32_t i = 0; i < program->step_count && code == 0; i++) {
        const struct cuda_step *step = &program->steps[i];
        struct schedule_step row = {.node = step->node, .operation = step->kernel->operation};
        if (step->kernel == &cuda_kernel_ready)
            continue;
        row.phase = step->kernel == &cuda_kernel_loss ? SCHEDULE_LOSS : phase;
        if (row.phase == SCHEDULE_LOSS)
            phase = SCHEDULE_BACKWARD;
        if (passes)
            row.measured_ns = program->took_ns[i] / passes;
        snprintf(row.engine, sizeof row.engine, "%s", step->kernel->name);
        if (cuda_step_convolves(step)) {
            const struct dnn_shape *shape = &step->convolution.shape;
            const struct dnn_plan *plan = step->convolution.plan;
            for (enum dnn_tensor k = 0; k < DNN_TENSORS; k++)
                if (dnn_takes(shape, k))
                    *(dnn_writes(shape, k) ? &row.write_bytes : &row.read_bytes) +=
                        dnn_tensor_bytes(shape, k);
            row.flops = 2.0 * (double)graph_node_macs(program->model->graph, step->node) *
                        (double)shape->window.images;
            row.workspace_bytes = plan ? plan->workspace_bytes : 0;
            if (plan)
                snprintf(row.engine, sizeof row.engine, "cuDNN engine %lld",
                         (long long)plan->engine);
            name_fusions(shape->fusion, row.fused, sizeof row.fused);
        } else {
            describe_kernel(program, step, &row);
        }
        code = schedule_add(schedule, &row);
    }
    if (code || !program->training)
        return code;
    /* The update reads gradients as layers left them, and also writes the layers' copies. */
    const struct cuda_model *model = program->model;
    code = schedule_add_update(schedule, model->graph, "device_optimise", update_ns);
    for (uint32_t i = 0; i < model->graph->parameter_count && code == 0; i++) {
        struct schedule_step *row = &schedule->steps[schedule->count - 1];
        const uint64_t count = model->graph->parameters[i].count;
        const uint64_t bytes = count * device_type_bytes(model->type);
        if (model->compute[i] == cuda_parameter(model, i))
            continue;
        row->read_bytes -= count * sizeof(float) - bytes;
        row->write_bytes += bytes;
    }
    return code;
}

int cuda_schedule(const void *settings, const struct schedule_request *request,
                  struct schedule *schedule)
{
    const struct backend_config config = {.graph = request->graph,
                                          .batch_size = request->batch_size,
                                          .training = request->training,
                                          .ranges = request->ranges};
    struct cuda_model model = {.outlined = true};
    struct cuda_program *program = NULL;
    struct dnn_config dnn = {.described = request->device, .deterministic = true, .tournament = 1};
    int code = 0;

    if (request->device > 0 && request->device < 80)
        return fail(EINVAL,
                    "backend cuda needs compute capability 8.0: name an a100, h100 or h200");
    if (request->device == 0) { /* this machine's */
        const uint64_t device = ((const struct cuda_settings *)settings)->device;
        struct runtime runtime = {0};
        if (runtime_usable())
            return fail(ENODEV, "no usable GPU in this machine: name one with --gpu");
        code = runtime_open(&runtime, (uint32_t)device, 0);
        dnn.described = runtime.capability;
        runtime_close(&runtime);
    }
    if (code == 0)
        code = dnn_open(&model.dnn, &dnn);
    if (code == 0)
        code = cuda_model_open(&model, settings, &config);
    if (code == 0)
        code = cuda_int8_open(&model);
    if (code == 0) {
        program = cuda_compile(&model, request->batch_size, request->training);
        code = program ? cuda_list_steps(program, 0, 0, schedule) : -EIO;
    }
    cuda_program_destroy(program);
    dnn_close(model.dnn);
    cuda_int8_close(&model);
    cuda_model_close(&model);
    return code;
}
