/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN 3: layouts are handles; a primitive descriptor is created in one call.
 */
#include "trainer/cpu_dnnl.h"

#include "base/random.h"

/* ---- layouts ---- */

static dnnl_status_t made(cpu_raw_layout *raw, dnnl_status_t status, dnnl_memory_desc_t desc)
{
    *raw = status ? NULL : desc;
    return status;
}

dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                             dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&desc, ndims, dims, type, tag);

    return made(raw, status, desc);
}

dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                           const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_submemory(&desc, whole, dims, offsets);

    return made(raw, status, desc);
}

dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_clone(&desc, from);

    return made(raw, status, desc);
}

void cpu_raw_destroy(cpu_raw_layout raw)
{
    dnnl_memory_desc_destroy((dnnl_memory_desc_t)(uintptr_t)raw);
}

/* Returns an array owned by the layout. */
static const dnnl_dim_t *vector(cpu_raw_layout raw, dnnl_query_t what)
{
    const dnnl_dims_t *dims = NULL;

    return dnnl_memory_desc_query(raw, what, &dims) || !dims ? NULL : *dims;
}

static int number(cpu_raw_layout raw, dnnl_query_t what)
{
    int count = 0;

    return dnnl_memory_desc_query(raw, what, &count) ? 0 : count;
}

int cpu_raw_dims(cpu_raw_layout raw, dnnl_dims_t dims)
{
    const int ndims = number(raw, dnnl_query_ndims_s32);
    const dnnl_dim_t *from = vector(raw, dnnl_query_dims);

    for (int i = 0; from && i < ndims; i++)
        dims[i] = from[i];
    return ndims;
}

dnnl_data_type_t cpu_raw_type(cpu_raw_layout raw)
{
    dnnl_data_type_t type = dnnl_f32;

    dnnl_memory_desc_query(raw, dnnl_query_data_type, &type);
    return type;
}

uint64_t cpu_layout_hash(uint64_t hash, const struct cpu_layout *layout)
{
    const dnnl_dim_t *strides = vector(layout->raw, dnnl_query_strides);
    const dnnl_dim_t *blocks = vector(layout->raw, dnnl_query_inner_blks);
    const dnnl_dim_t *places = vector(layout->raw, dnnl_query_inner_idxs);

    for (int i = 0; strides && i < layout->ndims; i++)
        hash = random_hash(hash, (uint64_t)strides[i], (uint64_t)i);
    for (int i = 0; blocks && places && i < number(layout->raw, dnnl_query_inner_nblks_s32); i++)
        hash = random_hash(hash, (uint64_t)blocks[i], (uint64_t)places[i]);
    return hash;
}

/* ---- operations ---- */

/* The query, and its subject. */
struct request {
    const struct cpu_operation *operation;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t hint;
};

static const dnnl_dims_t dense = {0}; /* no dilation */

static bool is_forward(const struct cpu_operation *operation)
{
    return operation->pass == dnnl_forward_training || operation->pass == dnnl_forward_inference;
}

static dnnl_status_t convolve(const struct request *request, dnnl_primitive_desc_t *desc)
{
    const struct cpu_operation *operation = request->operation;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const struct cpu_window *window = &operation->window;
    cpu_raw_layout source = operation->source->raw, weight = operation->weight->raw;
    cpu_raw_layout target = operation->target->raw;
    cpu_raw_layout bias = operation->bias ? operation->bias->raw : NULL;

    if (operation->pass == dnnl_backward_data)
        return dnnl_convolution_backward_data_primitive_desc_create(
            desc, request->engine, direct, source, weight, target, window->strides, dense,
            window->before, window->behind, request->hint, request->attributes);
    if (operation->pass == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            desc, request->engine, direct, source, weight, bias, target, window->strides, dense,
            window->before, window->behind, request->hint, request->attributes);
    return dnnl_convolution_forward_primitive_desc_create(
        desc, request->engine, operation->pass, direct, source, weight, bias, target,
        window->strides, dense, window->before, window->behind, request->attributes);
}

static dnnl_status_t multiply(const struct request *request, dnnl_primitive_desc_t *desc)
{
    const struct cpu_operation *operation = request->operation;
    cpu_raw_layout source = operation->source->raw, weight = operation->weight->raw;
    cpu_raw_layout target = operation->target->raw;
    cpu_raw_layout bias = operation->bias ? operation->bias->raw : NULL;

    if (operation->pass == dnnl_backward_data)
        return dnnl_inner_product_backward_data_primitive_desc_create(
            desc, request->engine, source, weight, target, request->hint, request->attributes);
    if (operation->pass == dnnl_backward_weights)
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            desc, request->engine, source, weight, bias, target, request->hint,
            request->attributes);
    return dnnl_inner_product_forward_primitive_desc_create(
        desc, request->engine, operation->pass, source, weight, bias, target, request->attributes);
}

static dnnl_status_t pool(const struct request *request, dnnl_primitive_desc_t *desc)
{
    const struct cpu_operation *operation = request->operation;
    const struct cpu_window *window = &operation->window;
    cpu_raw_layout source = operation->source->raw, target = operation->target->raw;

    if (is_forward(operation))
        return dnnl_pooling_forward_primitive_desc_create(
            desc, request->engine, operation->pass, operation->algorithm, source, target,
            window->strides, window->sides, dense, window->before, window->behind,
            request->attributes);
    return dnnl_pooling_backward_primitive_desc_create(
        desc, request->engine, operation->algorithm, source, target, window->strides, window->sides,
        dense, window->before, window->behind, request->hint, request->attributes);
}

static dnnl_status_t forward(const struct request *request, dnnl_primitive_desc_t *desc)
{
    const struct cpu_operation *operation = request->operation;
    cpu_raw_layout raw = operation->source->raw;

    if (operation->kind == CPU_NORM)
        return dnnl_batch_normalization_forward_primitive_desc_create(
            desc, request->engine, operation->pass, raw, raw, operation->epsilon, operation->flags,
            request->attributes);
    if (operation->kind == CPU_ELTWISE)
        return dnnl_eltwise_forward_primitive_desc_create(desc, request->engine, operation->pass,
                                                          operation->algorithm, raw, raw, 0, 0,
                                                          request->attributes);
    return dnnl_lrn_forward_primitive_desc_create(
        desc, request->engine, operation->pass, dnnl_lrn_across_channels, raw, raw, operation->size,
        operation->alpha, operation->beta, operation->k, request->attributes);
}

static dnnl_status_t backward(const struct request *request, dnnl_primitive_desc_t *desc)
{
    const struct cpu_operation *operation = request->operation;
    cpu_raw_layout raw = operation->source->raw;

    if (operation->kind == CPU_NORM)
        return dnnl_batch_normalization_backward_primitive_desc_create(
            desc, request->engine, operation->pass, raw, raw, raw, operation->epsilon,
            operation->flags, request->hint, request->attributes);
    if (operation->kind == CPU_ELTWISE)
        return dnnl_eltwise_backward_primitive_desc_create(desc, request->engine,
                                                           operation->algorithm, raw, raw, raw, 0,
                                                           0, request->hint, request->attributes);
    return dnnl_lrn_backward_primitive_desc_create(
        desc, request->engine, dnnl_lrn_across_channels, raw, raw, raw, operation->size,
        operation->alpha, operation->beta, operation->k, request->hint, request->attributes);
}

dnnl_status_t cpu_dnnl_describe(const struct cpu_dnnl *dnnl, const struct cpu_operation *operation,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *desc)
{
    const struct request request = {operation, dnnl->engine, attributes, hint};
    cpu_raw_layout raw = operation->source->raw;

    switch (operation->kind) {
    case CPU_CONVOLUTION:
        return convolve(&request, desc);
    case CPU_INNER_PRODUCT:
        return multiply(&request, desc);
    case CPU_POOL:
        return pool(&request, desc);
    case CPU_ADD:
        return dnnl_binary_primitive_desc_create(desc, dnnl->engine, dnnl_binary_add, raw, raw, raw,
                                                 attributes);
    case CPU_NORM:
    case CPU_ELTWISE:
    case CPU_LRN:
        break;
    }
    return is_forward(operation) ? forward(&request, desc) : backward(&request, desc);
}

dnnl_status_t cpu_dnnl_describe_concat(const struct cpu_dnnl *dnnl, const struct cpu_layout *target,
                                       int count, const struct cpu_layout *const *sources,
                                       dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *desc)
{
    cpu_raw_layout raw[CPU_INPUTS_MAX];

    if (count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < count; i++)
        raw[i] = sources[i]->raw;
    return dnnl_concat_primitive_desc_create(desc, dnnl->engine, target->raw, count, 1, raw,
                                             attributes);
}

dnnl_status_t cpu_dnnl_describe_sum(const struct cpu_dnnl *dnnl, const struct cpu_layout *layout,
                                    int count, dnnl_primitive_attr_t attributes,
                                    dnnl_primitive_desc_t *desc)
{
    cpu_raw_layout raw[CPU_INPUTS_MAX];
    float scales[CPU_INPUTS_MAX];

    if (count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < count; i++) {
        raw[i] = layout->raw;
        scales[i] = 1;
    }
    return dnnl_sum_primitive_desc_create(desc, dnnl->engine, layout->raw, count, scales, raw,
                                          attributes);
}

dnnl_status_t cpu_dnnl_scale(dnnl_primitive_attr_t attributes, const struct cpu_scaling *scaling)
{
    const int channels = scaling->grouped ? 3 : 1; /* leading dimensions of the weights */

    return dnnl_primitive_attr_set_scales_mask(attributes, scaling->argument,
                                               scaling->count > 1 ? channels : 0);
}

int cpu_dnnl_scales_argument(const struct cpu_scaling *scaling)
{
    return DNNL_ARG_ATTR_SCALES | scaling->argument;
}

dnnl_status_t cpu_dnnl_append(dnnl_post_ops_t list, unsigned behind, float summand)
{
    dnnl_status_t status = dnnl_success;

    if (behind & CPU_SUM)
        status = dnnl_post_ops_append_sum(list, summand, 0, dnnl_data_type_undef);
    if (status == dnnl_success && behind & CPU_RELU)
        status = dnnl_post_ops_append_eltwise(list, dnnl_eltwise_relu, 0, 0);
    return status;
}
