/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu/dnnl.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

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
