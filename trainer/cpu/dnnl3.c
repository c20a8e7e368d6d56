/* SPDX-License-Identifier: Apache-2.0
 * oneDNN 3: layouts are handles, factors are arguments. */
#include "trainer/cpu/dnnl.h"

#include "base/random.h"

/* ---- layouts ---- */

static dnnl_status_t made(cpu_raw_layout *raw, dnnl_memory_desc_t desc, dnnl_status_t status)
{
    *raw = status ? NULL : desc;
    return status;
}

dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                             dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&desc, ndims, dims, type, tag);

    return made(raw, desc, status);
}

dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                           const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_submemory(&desc, whole, dims, offsets);

    return made(raw, desc, status);
}

dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_clone(&desc, from);

    return made(raw, desc, status);
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

/* ---- attributes ---- */

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

    if (behind & CPU_ACCUMULATE)
        status = dnnl_post_ops_append_sum(list, summand, 0, dnnl_data_type_undef);
    if (status == dnnl_success && behind & CPU_RELU)
        status = dnnl_post_ops_append_eltwise(list, dnnl_eltwise_relu, 0, 0);
    return status;
}
