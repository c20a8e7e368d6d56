/* SPDX-License-Identifier: Apache-2.0
 * oneDNN 2: layouts are values, factors are attributes. */
#include "trainer/cpu/dnnl.h"

#include "base/memory.h"
#include "base/random.h"

#include <stdlib.h>

/* ---- layouts ---- */

static dnnl_status_t place(cpu_raw_layout *raw, const dnnl_memory_desc_t *value,
                           dnnl_status_t status)
{
    dnnl_memory_desc_t *copy = status ? NULL : memory_zeroed(sizeof *copy);

    if (copy)
        *copy = *value;
    *raw = copy;
    return status ? status : copy ? dnnl_success : dnnl_out_of_memory;
}

dnnl_status_t cpu_raw_by_tag(cpu_raw_layout *raw, int ndims, const dnnl_dim_t *dims,
                             dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t value;

    return place(raw, &value, dnnl_memory_desc_init_by_tag(&value, ndims, dims, type, tag));
}

dnnl_status_t cpu_raw_part(cpu_raw_layout *raw, cpu_raw_layout whole, const dnnl_dim_t *dims,
                           const dnnl_dim_t *offsets)
{
    dnnl_memory_desc_t value;

    return place(raw, &value, dnnl_memory_desc_init_submemory(&value, whole, dims, offsets));
}

dnnl_status_t cpu_raw_copy(cpu_raw_layout *raw, cpu_raw_layout from)
{
    return place(raw, from, dnnl_success);
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

/* ---- attributes ---- */

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

    if (behind & CPU_ACCUMULATE)
        status = dnnl_post_ops_append_sum(list, summand);
    if (status == dnnl_success && behind & CPU_RELU)
        status = dnnl_post_ops_append_eltwise(list, 1, dnnl_eltwise_relu, 0, 0);
    return status;
}
