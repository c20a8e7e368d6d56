/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN 2: layouts are values; an operation descriptor precedes the primitive descriptor.
 */
#include "trainer/cpu_dnnl.h"

#include "base/memory.h"
#include "base/random.h"

#include <stdlib.h>

/* ---- layouts ---- */

static dnnl_memory_desc_t *place(cpu_raw_layout *raw)
{
    dnnl_memory_desc_t *desc = memory_zeroed(sizeof *desc);

    *raw = desc;
    return desc;
}

/* Returns the new layout, or an empty one on failure. */
static dnnl_status_t made(cpu_raw_layout *raw, dnnl_status_t status)
{
    if (status)
        cpu_raw_destroy(*raw);
    return status;
}

dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                             dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t *desc = place(raw);

    return desc ? made(raw, dnnl_memory_desc_init_by_tag(desc, ndims, dims, type, tag))
                : dnnl_out_of_memory;
}

dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                           const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t *desc = place(raw);

    return desc ? made(raw, dnnl_memory_desc_init_submemory(desc, whole, dims, offsets))
                : dnnl_out_of_memory;
}

dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    dnnl_memory_desc_t *desc = place(raw);

    if (!desc)
        return dnnl_out_of_memory;
    *desc = *from;
    return dnnl_success;
}

void cpu_raw_destroy(cpu_raw_layout raw)
{
    free((void *)(uintptr_t)raw);
}

int cpu_raw_dims(cpu_raw_layout raw, dnnl_dims_t dims)
{
    for (int i = 0; i < raw->ndims; i++)
        dims[i] = raw->dims[i];
    return raw->ndims;
}

dnnl_data_type_t cpu_raw_type(cpu_raw_layout raw)
{
    return raw->data_type;
}

uint64_t cpu_layout_hash(uint64_t hash, const struct cpu_layout *layout)
{
    const dnnl_blocking_desc_t *blocks = &layout->raw->format_desc.blocking;

    for (int i = 0; i < layout->ndims; i++)
        hash = random_hash(hash, (uint64_t)blocks->strides[i], (uint64_t)i);
    for (int i = 0; i < blocks->inner_nblks; i++)
        hash = random_hash(hash, (uint64_t)blocks->inner_blks[i], (uint64_t)blocks->inner_idxs[i]);
    return hash;
}

/* ---- operations ---- */

union description {
    dnnl_convolution_desc_t convolution;
    dnnl_inner_product_desc_t product;
    dnnl_batch_normalization_desc_t norm;
    dnnl_eltwise_desc_t eltwise;
    dnnl_pooling_desc_t pool;
    dnnl_lrn_desc_t lrn;
    dnnl_binary_desc_t binary;
};

static bool is_forward(const struct cpu_operation *operation)
{
    return operation->pass == dnnl_forward_training || operation->pass == dnnl_forward_inference;
}

static dnnl_status_t convolve(const struct cpu_operation *operation,
                              dnnl_convolution_desc_t *description)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const struct cpu_window *window = &operation->window;
    cpu_raw_layout source = operation->source->raw, weight = operation->weight->raw;
    cpu_raw_layout target = operation->target->raw;
    cpu_raw_layout bias = operation->bias ? operation->bias->raw : NULL;

    if (operation->pass == dnnl_backward_data)
        return dnnl_convolution_backward_data_desc_init(description, direct, source, weight, target,
                                                        window->strides, window->before,
                                                        window->behind);
    if (operation->pass == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_desc_init(description, direct, source, weight,
                                                           bias, target, window->strides,
                                                           window->before, window->behind);
    return dnnl_convolution_forward_desc_init(description, operation->pass, direct, source, weight,
                                              bias, target, window->strides, window->before,
                                              window->behind);
}

static dnnl_status_t multiply(const struct cpu_operation *operation,
                              dnnl_inner_product_desc_t *description)
{
    cpu_raw_layout source = operation->source->raw, weight = operation->weight->raw;
    cpu_raw_layout target = operation->target->raw;
    cpu_raw_layout bias = operation->bias ? operation->bias->raw : NULL;

    if (operation->pass == dnnl_backward_data)
        return dnnl_inner_product_backward_data_desc_init(description, source, weight, target);
    if (operation->pass == dnnl_backward_weights)
        return dnnl_inner_product_backward_weights_desc_init(description, source, weight, bias,
                                                             target);
    return dnnl_inner_product_forward_desc_init(description, operation->pass, source, weight, bias,
                                                target);
}

static dnnl_status_t pool(const struct cpu_operation *operation, dnnl_pooling_desc_t *description)
{
    const struct cpu_window *window = &operation->window;
    cpu_raw_layout source = operation->source->raw, target = operation->target->raw;

    if (is_forward(operation))
        return dnnl_pooling_forward_desc_init(description, operation->pass, operation->algorithm,
                                              source, target, window->strides, window->sides,
                                              window->before, window->behind);
    return dnnl_pooling_backward_desc_init(description, operation->algorithm, source, target,
                                           window->strides, window->sides, window->before,
                                           window->behind);
}

/* Operations with one layout for all tensors. */
static dnnl_status_t plain(const struct cpu_operation *operation, union description *description)
{
    const dnnl_alg_kind_t across = dnnl_lrn_across_channels;
    const dnnl_prop_kind_t pass = operation->pass;
    const bool forward = is_forward(operation);
    cpu_raw_layout raw = operation->source->raw;

    switch (operation->kind) {
    case CPU_NORM:
        return forward ? dnnl_batch_normalization_forward_desc_init(
                             &description->norm, pass, raw, operation->epsilon, operation->flags)
                       : dnnl_batch_normalization_backward_desc_init(&description->norm, pass, raw,
                                                                     raw, operation->epsilon,
                                                                     operation->flags);
    case CPU_ELTWISE:
        return forward ? dnnl_eltwise_forward_desc_init(&description->eltwise, pass,
                                                        operation->algorithm, raw, 0, 0)
                       : dnnl_eltwise_backward_desc_init(&description->eltwise,
                                                         operation->algorithm, raw, raw, 0, 0);
    case CPU_LRN:
        return forward ? dnnl_lrn_forward_desc_init(&description->lrn, pass, across, raw,
                                                    operation->size, operation->alpha,
                                                    operation->beta, operation->k)
                       : dnnl_lrn_backward_desc_init(&description->lrn, across, raw, raw,
                                                     operation->size, operation->alpha,
                                                     operation->beta, operation->k);
    case CPU_ADD:
        return dnnl_binary_desc_init(&description->binary, dnnl_binary_add, raw, raw, raw);
    case CPU_CONVOLUTION:
    case CPU_INNER_PRODUCT:
    case CPU_POOL:
        break;
    }
    return dnnl_invalid_arguments;
}

dnnl_status_t cpu_dnnl_describe(const struct cpu_dnnl *dnnl, const struct cpu_operation *operation,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *desc)
{
    union description description;
    dnnl_status_t status;

    if (operation->kind == CPU_CONVOLUTION)
        status = convolve(operation, &description.convolution);
    else if (operation->kind == CPU_INNER_PRODUCT)
        status = multiply(operation, &description.product);
    else if (operation->kind == CPU_POOL)
        status = pool(operation, &description.pool);
    else
        status = plain(operation, &description);
    return status ? status
                  : dnnl_primitive_desc_create(desc, &description, attributes, dnnl->engine, hint);
}

dnnl_status_t cpu_dnnl_describe_concat(const struct cpu_dnnl *dnnl, const struct cpu_layout *target,
                                       int count, const struct cpu_layout *const *sources,
                                       dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t copies[CPU_INPUTS_MAX];

    if (count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < count; i++)
        copies[i] = *sources[i]->raw;
    return dnnl_concat_primitive_desc_create(desc, target->raw, count, 1, copies, attributes,
                                             dnnl->engine);
}

dnnl_status_t cpu_dnnl_describe_sum(const struct cpu_dnnl *dnnl, const struct cpu_layout *layout,
                                    int count, dnnl_primitive_attr_t attributes,
                                    dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t copies[CPU_INPUTS_MAX];
    float scales[CPU_INPUTS_MAX];

    if (count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < count; i++) {
        copies[i] = *layout->raw;
        scales[i] = 1;
    }
    return dnnl_sum_primitive_desc_create(desc, layout->raw, count, scales, copies, attributes,
                                          dnnl->engine);
}

dnnl_status_t cpu_dnnl_scale(dnnl_primitive_attr_t attributes, const struct cpu_scaling *scaling)
{
    const int mask = scaling->count > 1 ? 1 << 1 : 0; /* output channels */

    return dnnl_primitive_attr_set_output_scales(attributes, scaling->count, mask,
                                                 scaling->factors);
}

int cpu_dnnl_scales_argument(const struct cpu_scaling *scaling)
{
    (void)scaling;
    return 0;
}

dnnl_status_t cpu_dnnl_append(dnnl_post_ops_t list, unsigned behind, float summand)
{
    dnnl_status_t status = dnnl_success;

    if (behind & CPU_SUM)
        status = dnnl_post_ops_append_sum(list, summand);
    if (status == dnnl_success && behind & CPU_RELU)
        status = dnnl_post_ops_append_eltwise(list, 1, dnnl_eltwise_relu, 0, 0);
    return status;
}
