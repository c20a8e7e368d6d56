/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN 2 makes an operation descriptor first; its layouts are values, and factors are attributes.
 * oneDNN 3 takes the same arguments in one call, some of them more explicitly; its layouts are
 * handles, and factors are arguments.
 */
#include "trainer/cpu/dnnl.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>

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

static dnnl_status_t create_desc(dnnl_primitive_desc_t *desc, const union description *description,
                                 dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t hint, dnnl_status_t status)
{
    return status ? status
                  : dnnl_primitive_desc_create(desc, description, attributes, engine, hint);
}

typedef dnnl_memory_desc_t listed;
#define DENSE
#define DATA(RAW) RAW
#define LISTED(RAW) (*(RAW))
#define CREATE_LIST(NAME, ...) \
    dnnl_##NAME##_primitive_desc_create(desc, __VA_ARGS__, attributes, dnnl->engine)
#define CREATE_AFTER(HINT, NAME, ...)                               \
    create_desc(desc, &description, attributes, dnnl->engine, HINT, \
                dnnl_##NAME##_desc_init((void *)&description, __VA_ARGS__))
#define FORWARD(...) CREATE_AFTER(NULL, __VA_ARGS__)
#define BACKWARD(...) CREATE_AFTER(hint, __VA_ARGS__)
#define DESCRIPTION union description description;
#define SUM_DEFAULTS
#define ELTWISE_SCALE 1,

static dnnl_status_t place(cpu_raw_layout *raw, const dnnl_memory_desc_t *value,
                           dnnl_status_t status)
{
    dnnl_memory_desc_t *copy = status ? NULL : memory_zeroed(sizeof *copy);

    if (copy)
        *copy = *value;
    *raw = copy;
    return status ? status : copy ? dnnl_success : dnnl_out_of_memory;
}

static dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t value;

    return place(raw, &value, dnnl_memory_desc_init_by_tag(&value, ndims, dims, type, tag));
}

static dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                                  const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t value;

    return place(raw, &value, dnnl_memory_desc_init_submemory(&value, whole, dims, offsets));
}

static dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    return place(raw, from, dnnl_success);
}

static void cpu_raw_destroy(cpu_raw_layout raw)
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

#else
static const dnnl_dims_t dense = {0};

typedef const_dnnl_memory_desc_t listed;
#define DENSE dense,
#define DATA(RAW) RAW, RAW
#define LISTED(RAW) RAW
#define CREATE_LIST(NAME, ...) FORWARD(NAME, __VA_ARGS__)
#define FORWARD(NAME, ...) \
    dnnl_##NAME##_primitive_desc_create(desc, dnnl->engine, __VA_ARGS__, attributes)
#define BACKWARD(NAME, ...) FORWARD(NAME, __VA_ARGS__, hint)
#define DESCRIPTION
#define SUM_DEFAULTS , 0, dnnl_data_type_undef
#define ELTWISE_SCALE

static dnnl_status_t made(cpu_raw_layout *raw, dnnl_memory_desc_t desc, dnnl_status_t status)
{
    *raw = status ? NULL : desc;
    return status;
}

static dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&desc, ndims, dims, type, tag);

    return made(raw, desc, status);
}

static dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                                  const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_submemory(&desc, whole, dims, offsets);

    return made(raw, desc, status);
}

static dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_clone(&desc, from);

    return made(raw, desc, status);
}

static void cpu_raw_destroy(cpu_raw_layout raw)
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

#endif

dnnl_status_t cpu_dnnl_append(dnnl_post_ops_t list, unsigned behind, float summand)
{
    dnnl_status_t status = dnnl_success;

    if (behind & CPU_ACCUMULATE)
        status = dnnl_post_ops_append_sum(list, summand SUM_DEFAULTS);
    if (status == dnnl_success && behind & CPU_RELU)
        status = dnnl_post_ops_append_eltwise(list, ELTWISE_SCALE dnnl_eltwise_relu, 0, 0);
    return status;
}

int cpu_check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return 0;
    if (status == dnnl_out_of_memory)
        return fail(ENOMEM, "backend cpu: %s: oneDNN is out of memory", what);
    if (status == dnnl_unimplemented)
        return fail(ENOSYS,
                    "backend cpu: %s: oneDNN has no code for this; use the reference "
                    "backend",
                    what);
    if (status == dnnl_invalid_arguments)
        return fail(EINVAL, "backend cpu: %s: oneDNN rejects the shape", what);
    return fail(EIO, "backend cpu: %s: oneDNN failed with status %d", what, (int)status);
}

int cpu_dnnl_open(struct cpu_dnnl *dnnl)
{
    int code = cpu_check(dnnl_engine_create(&dnnl->engine, dnnl_cpu, 0), "engine");

    return code ? code
                : cpu_check(
                      dnnl_stream_create(&dnnl->stream, dnnl->engine, dnnl_stream_default_flags),
                      "stream");
}

void cpu_dnnl_close(struct cpu_dnnl *dnnl)
{
    while (dnnl->layouts) {
        struct cpu_layout *next = dnnl->layouts->next;
        cpu_raw_destroy(dnnl->layouts->raw);
        free(dnnl->layouts);
        dnnl->layouts = next;
    }
    dnnl_stream_destroy(dnnl->stream);
    dnnl_engine_destroy(dnnl->engine);
    *dnnl = (struct cpu_dnnl){0};
}

/* ---- threads ----
 *
 * Functions of our own run on oneDNN's threads: those of libgomp, through the entry points that GCC
 * compiles `#pragma omp parallel` to. Not every compiler has omp.h, and a second runtime would
 * create a second set of threads. */

void GOMP_parallel(void (*body)(void *argument), void *argument, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct work {
    uint64_t count, unit;
    cpu_part body;
    const void *context;
};

static void do_share(void *argument)
{
    const struct work *work = argument;
    const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)omp_get_thread_num();
    const uint64_t units = (work->count + work->unit - 1) / work->unit;
    const uint64_t first = units * me / threads * work->unit;
    const uint64_t end = units * (me + 1) / threads * work->unit;

    if (first < work->count)
        work->body(work->context, first, end < work->count ? end : work->count);
}

void cpu_share(uint64_t count, uint64_t unit, cpu_part body, const void *context)
{
    struct work work = {count, unit, body, context};

    GOMP_parallel(do_share, &work, 0, 0);
}

/* ---- layouts ---- */

/* The reason is left to the caller: if it goes on after an error of its own, that one counts. */
static const struct cpu_layout *out_of_memory(struct cpu_dnnl *dnnl)
{
    static const struct cpu_layout empty;

    dnnl->code = -ENOMEM;
    return &empty;
}

static const struct cpu_layout *intern(struct cpu_dnnl *dnnl, cpu_raw_layout raw)
{
    struct cpu_layout *layout = dnnl->layouts;

    while (layout && !dnnl_memory_desc_equal(layout->raw, raw))
        layout = layout->next;
    if (layout)
        return layout;
    layout = memory_zeroed(sizeof *layout);
    if (!layout || cpu_raw_copy(&layout->raw, raw)) {
        free(layout);
        return out_of_memory(dnnl);
    }
    layout->ndims = cpu_raw_dims(raw, layout->dims);
    layout->type = cpu_raw_type(raw);
    layout->bytes = dnnl_memory_desc_get_size(raw);
    layout->next = dnnl->layouts;
    return dnnl->layouts = layout;
}

/* Intern a new layout and destroy the original. */
static const struct cpu_layout *adopt(struct cpu_dnnl *dnnl, cpu_raw_layout raw)
{
    const struct cpu_layout *layout = intern(dnnl, raw);

    cpu_raw_destroy(raw);
    return layout;
}

const struct cpu_layout *cpu_tagged(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims,
                                    dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    cpu_raw_layout raw;

    return cpu_raw_by_tag(&raw, ndims, dims, type, tag) ? out_of_memory(dnnl) : adopt(dnnl, raw);
}

const struct cpu_layout *cpu_dense(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims,
                                   dnnl_data_type_t type)
{
    static const dnnl_format_tag_t tags[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};

    return cpu_tagged(dnnl, ndims, dims, type, tags[ndims]);
}

const struct cpu_layout *cpu_plain(struct cpu_dnnl *dnnl, int ndims, const dnnl_dim_t *dims)
{
    return cpu_dense(dnnl, ndims, dims, dnnl_f32);
}

const struct cpu_layout *cpu_any(struct cpu_dnnl *dnnl, const struct cpu_layout *like,
                                 dnnl_data_type_t type)
{
    return cpu_tagged(dnnl, like->ndims, like->dims, type, dnnl_format_tag_any);
}

const struct cpu_layout *cpu_cut(struct cpu_dnnl *dnnl, const struct cpu_layout *whole,
                                 const dnnl_dim_t *dims, const dnnl_dim_t *offsets)
{
    cpu_raw_layout raw;

    return cpu_raw_part(&raw, whole->raw, dims, offsets) ? NULL : adopt(dnnl, raw);
}

const struct cpu_layout *cpu_layout_of(struct cpu_dnnl *dnnl, dnnl_primitive_desc_t desc,
                                       dnnl_query_t what)
{
    return intern(dnnl, dnnl_primitive_desc_query_md(desc, what, 0));
}

int cpu_reorder(const struct cpu_dnnl *dnnl, const struct cpu_layout *from_layout,
                const float *from, const struct cpu_layout *to_layout, float *to)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t source = NULL, target = NULL;

    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&desc, from_layout->raw, dnnl->engine,
                                                              to_layout->raw, dnnl->engine, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&primitive, desc);
    /* oneDNN's handles are not const, but a source is only read. */
    if (status == dnnl_success)
        status =
            dnnl_memory_create(&source, from_layout->raw, dnnl->engine, (void *)(uintptr_t)from);
    if (status == dnnl_success)
        status = dnnl_memory_create(&target, to_layout->raw, dnnl->engine, to);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive, dnnl->stream, 2, arguments);
    if (status == dnnl_success)
        status = dnnl_stream_wait(dnnl->stream);
    dnnl_memory_destroy(target);
    dnnl_memory_destroy(source);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    return cpu_check(status, "reorder");
}

/* ---- operations ---- */

dnnl_status_t cpu_dnnl_describe(const struct cpu_dnnl *dnnl, const struct cpu_operation *with,
                                dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                dnnl_primitive_desc_t *desc)
{
    const struct cpu_window *window = &with->window;
    const struct cpu_layout *from = with->source, *to = with->target;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct, across = dnnl_lrn_across_channels;
    const bool forward =
        with->pass == dnnl_forward_training || with->pass == dnnl_forward_inference;
    cpu_raw_layout source = from ? from->raw : NULL, target = to ? to->raw : NULL;
    cpu_raw_layout weight = with->weight ? with->weight->raw : NULL;
    cpu_raw_layout bias = with->bias ? with->bias->raw : NULL, like = NULL, last = NULL;
    dnnl_status_t status;
    listed inputs[CPU_INPUTS_MAX];
    float ones[CPU_INPUTS_MAX];
    DESCRIPTION

    switch (with->kind) {
    case CPU_CONVOLUTION:
        if (with->pass == dnnl_backward_data)
            return BACKWARD(convolution_backward_data, direct, source, weight, target,
                            window->strides, DENSE window->before, window->behind);
        if (with->pass == dnnl_backward_weights)
            return BACKWARD(convolution_backward_weights, direct, source, weight, bias, target,
                            window->strides, DENSE window->before, window->behind);
        return FORWARD(convolution_forward, with->pass, direct, source, weight, bias, target,
                       window->strides, DENSE window->before, window->behind);
    case CPU_INNER_PRODUCT:
        if (with->pass == dnnl_backward_data)
            return BACKWARD(inner_product_backward_data, source, weight, target);
        if (with->pass == dnnl_backward_weights)
            return BACKWARD(inner_product_backward_weights, source, weight, bias, target);
        return FORWARD(inner_product_forward, with->pass, source, weight, bias, target);
    case CPU_NORM:
        return forward ? FORWARD(batch_normalization_forward, with->pass, DATA(source),
                                 with->epsilon, with->flags)
                       : BACKWARD(batch_normalization_backward, with->pass, DATA(source), source,
                                  with->epsilon, with->flags);
    case CPU_ELTWISE:
        return forward ? FORWARD(eltwise_forward, with->pass, with->algorithm, DATA(source), 0, 0)
                       : BACKWARD(eltwise_backward, with->algorithm, DATA(source), source, 0, 0);
    case CPU_LRN:
        return forward ? FORWARD(lrn_forward, with->pass, across, DATA(source), with->size,
                                 with->alpha, with->beta, with->k)
                       : BACKWARD(lrn_backward, across, DATA(source), source, with->size,
                                  with->alpha, with->beta, with->k);
    case CPU_ADD:
        return FORWARD(binary, dnnl_binary_add, source, source, source);
    case CPU_POOL:
        if (forward)
            return FORWARD(pooling_forward, with->pass, with->algorithm, source, target,
                           window->strides, window->sides, DENSE window->before, window->behind);
        /* If the target has single pixels and the source is channels last, make the target channels
         * last, too. Both layouts have the same addresses then, so oneDNN and intern() take one for
         * the other; but oneDNN has a fast kernel only for the source's own: the gradient of
         * ResNet-50's pool takes 0.9 ms instead of 89. */
        if (to->ndims == 4 && to->dims[2] == 1 && to->dims[3] == 1 &&
            !cpu_raw_by_tag(&like, 4, from->dims, from->type, dnnl_acdb)) {
            if (dnnl_memory_desc_equal(source, like) &&
                !cpu_raw_by_tag(&last, 4, to->dims, to->type, dnnl_acdb))
                target = last;
            cpu_raw_destroy(like);
        }
        status = BACKWARD(pooling_backward, with->algorithm, source, target, window->strides,
                          window->sides, DENSE window->before, window->behind);
        if (target == last)
            cpu_raw_destroy(last);
        return status;
    case CPU_CONCAT:
    case CPU_SUM:
        break;
    }
    if (with->input_count > CPU_INPUTS_MAX)
        return dnnl_invalid_arguments;
    for (int i = 0; i < with->input_count; i++) {
        inputs[i] = LISTED(with->inputs[i]->raw);
        ones[i] = 1;
    }
    return with->kind == CPU_CONCAT ? CREATE_LIST(concat, target, with->input_count, 1, inputs)
                                    : CREATE_LIST(sum, target, with->input_count, ones, inputs);
}
