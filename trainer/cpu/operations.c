/* SPDX-License-Identifier: Apache-2.0
 * Primitive descriptors. oneDNN 2 makes an operation descriptor first; oneDNN 3 takes the same
 * arguments in one call, and some of them more explicitly. */
#include "trainer/cpu/dnnl.h"

struct request {
    const struct cpu_operation *operation;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t hint, *desc;
};

/* DENSE: no dilation. DATA: input and output, in one layout. LISTED: an element of a list. */
#if DNNL_VERSION_MAJOR < 3
union description {
    dnnl_convolution_desc_t convolution;
    dnnl_inner_product_desc_t product;
    dnnl_batch_normalization_desc_t norm;
    dnnl_eltwise_desc_t eltwise;
    dnnl_pooling_desc_t pool;
    dnnl_lrn_desc_t lrn;
    dnnl_binary_desc_t binary;
};

static dnnl_status_t create_desc(const struct request *request,
                                 const union description *description, dnnl_primitive_desc_t hint,
                                 dnnl_status_t status)
{
    return status ? status
                  : dnnl_primitive_desc_create(request->desc, description, request->attributes,
                                               request->engine, hint);
}

typedef dnnl_memory_desc_t listed;
#define DENSE
#define DATA(RAW) RAW
#define LISTED(RAW) (*(RAW))
#define CREATE_LIST(NAME, ...)                                                           \
    dnnl_##NAME##_primitive_desc_create(request->desc, __VA_ARGS__, request->attributes, \
                                        request->engine)
#define CREATE_AFTER(HINT, NAME, ...)        \
    create_desc(request, &description, HINT, \
                dnnl_##NAME##_desc_init((void *)&description, __VA_ARGS__))
#define FORWARD(...) CREATE_AFTER(NULL, __VA_ARGS__)
#define BACKWARD(...) CREATE_AFTER(request->hint, __VA_ARGS__)
#define DESCRIPTION union description description;
#else
static const dnnl_dims_t dense = {0};

typedef const_dnnl_memory_desc_t listed;
#define DENSE dense,
#define DATA(RAW) RAW, RAW
#define LISTED(RAW) RAW
#define CREATE_LIST(NAME, ...) FORWARD(NAME, __VA_ARGS__)
#define FORWARD(NAME, ...)                                                           \
    dnnl_##NAME##_primitive_desc_create(request->desc, request->engine, __VA_ARGS__, \
                                        request->attributes)
#define BACKWARD(NAME, ...) FORWARD(NAME, __VA_ARGS__, request->hint)
#define DESCRIPTION
#endif

/* ---- operations ---- */

static bool is_forward(const struct cpu_operation *operation)
{
    return operation->pass == dnnl_forward_training || operation->pass == dnnl_forward_inference;
}

/* Convolutions and fully connected layers. */
static dnnl_status_t weighted(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    const struct cpu_window *window = &with->window;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const bool convolves = with->kind == CPU_CONVOLUTION;
    cpu_raw_layout source = with->source->raw, weight = with->weight->raw;
    cpu_raw_layout target = with->target->raw, bias = with->bias ? with->bias->raw : NULL;
    DESCRIPTION

    if (with->pass == dnnl_backward_data)
        return convolves ? BACKWARD(convolution_backward_data, direct, source, weight, target,
                                    window->strides, DENSE window->before, window->behind)
                         : BACKWARD(inner_product_backward_data, source, weight, target);
    if (with->pass == dnnl_backward_weights)
        return convolves ? BACKWARD(convolution_backward_weights, direct, source, weight, bias,
                                    target, window->strides, DENSE window->before, window->behind)
                         : BACKWARD(inner_product_backward_weights, source, weight, bias, target);
    return convolves ? FORWARD(convolution_forward, with->pass, direct, source, weight, bias,
                               target, window->strides, DENSE window->before, window->behind)
                     : FORWARD(inner_product_forward, with->pass, source, weight, bias, target);
}

static dnnl_status_t pool(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    const struct cpu_window *window = &with->window;
    const struct cpu_layout *from = with->source, *to = with->target;
    cpu_raw_layout like = NULL, last = NULL, source = from->raw, target = to->raw;
    DESCRIPTION

    if (is_forward(with))
        return FORWARD(pooling_forward, with->pass, with->algorithm, source, target,
                       window->strides, window->sides, DENSE window->before, window->behind);
    /* Make the target's layout channels last, if it is of single pixels and the source is channels
     * last. Layouts of a pixel differ in no address, so that oneDNN and intern() take one for the
     * other; but oneDNN has a fast kernel only for the source's own: 0.9 ms rather than 89 of the
     * gradient of ResNet-50's. */
    if (to->ndims == 4 && to->dims[2] == 1 && to->dims[3] == 1 &&
        !cpu_raw_by_tag(&like, 4, from->dims, from->type, dnnl_acdb)) {
        if (dnnl_memory_desc_equal(source, like) &&
            !cpu_raw_by_tag(&last, 4, to->dims, to->type, dnnl_acdb))
            target = last;
        cpu_raw_destroy(like);
    }
    const dnnl_status_t status =
        BACKWARD(pooling_backward, with->algorithm, source, target, window->strides, window->sides,
                 DENSE window->before, window->behind);
    if (target == last)
        cpu_raw_destroy(last);
    return status;
}

static dnnl_status_t norm(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    cpu_raw_layout raw = with->source->raw;
    DESCRIPTION

    return is_forward(with) ? FORWARD(batch_normalization_forward, with->pass, DATA(raw),
                                      with->epsilon, with->flags)
                            : BACKWARD(batch_normalization_backward, with->pass, DATA(raw), raw,
                                       with->epsilon, with->flags);
}

static dnnl_status_t eltwise(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    cpu_raw_layout raw = with->source->raw;
    DESCRIPTION

    return is_forward(with) ? FORWARD(eltwise_forward, with->pass, with->algorithm, DATA(raw), 0, 0)
                            : BACKWARD(eltwise_backward, with->algorithm, DATA(raw), raw, 0, 0);
}

static dnnl_status_t lrn(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    const dnnl_alg_kind_t across = dnnl_lrn_across_channels;
    cpu_raw_layout raw = with->source->raw;
    DESCRIPTION

    return is_forward(with) ? FORWARD(lrn_forward, with->pass, across, DATA(raw), with->size,
                                      with->alpha, with->beta, with->k)
                            : BACKWARD(lrn_backward, across, DATA(raw), raw, with->size,
                                       with->alpha, with->beta, with->k);
}

static dnnl_status_t binary_sum(const struct request *request)
{
    cpu_raw_layout raw = request->operation->source->raw;
    DESCRIPTION

    return FORWARD(binary, dnnl_binary_add, raw, raw, raw);
}

/* Of several tensors: their sum, or all their channels. */
static dnnl_status_t concat_or_sum(const struct request *request)
{
    const struct cpu_operation *with = request->operation;
    cpu_raw_layout target = with->target->raw;
    listed raw[CPU_INPUTS_MAX];
    float ones[CPU_INPUTS_MAX];

    if (with->input_count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < with->input_count; i++) {
        raw[i] = LISTED(with->inputs[i]->raw);
        ones[i] = 1;
    }
    return with->kind == CPU_CONCAT ? CREATE_LIST(concat, target, with->input_count, 1, raw)
                                    : CREATE_LIST(sum, target, with->input_count, ones, raw);
}

dnnl_status_t cpu_dnnl_describe(const struct cpu_dnnl *dnnl, const struct cpu_operation *operation,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *desc)
{
    static dnnl_status_t (*const kinds[])(const struct request *request) = {
        [CPU_CONVOLUTION] = weighted,
        [CPU_INNER_PRODUCT] = weighted,
        [CPU_NORM] = norm,
        [CPU_ELTWISE] = eltwise,
        [CPU_POOL] = pool,
        [CPU_LRN] = lrn,
        [CPU_ADD] = binary_sum,
        [CPU_CONCAT] = concat_or_sum,
        [CPU_SUM] = concat_or_sum};

    return kinds[operation->kind](
        &(struct request){operation, dnnl->engine, attributes, hint, desc});
}
