/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cpu.h"

#include "base/fail.h"

#include <errno.h>

int cpu_check(dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success:
        return 0;
    case dnnl_out_of_memory:
        return fail(ENOMEM, "backend cpu: %s: oneDNN is out of memory", what);
    case dnnl_unimplemented:
        return fail(ENOSYS,
                    "backend cpu: %s: oneDNN has no code for this; use the reference "
                    "backend",
                    what);
    case dnnl_invalid_arguments:
        return fail(EINVAL, "backend cpu: %s: oneDNN refuses the shape", what);
    case dnnl_iterator_ends:
    case dnnl_runtime_error:
    case dnnl_not_required:
        break;
    }
    return fail(EIO, "backend cpu: %s: oneDNN failed with status %d", what, (int)status);
}

dnnl_memory_desc_t cpu_plain(int ndims, const dnnl_dim_t *dims)
{
    static const dnnl_format_tag_t tags[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    dnnl_memory_desc_t desc = {0};

    dnnl_memory_desc_init_by_tag(&desc, ndims, dims, dnnl_f32, tags[ndims]);
    return desc;
}

dnnl_memory_desc_t cpu_any(const dnnl_memory_desc_t *desc)
{
    dnnl_memory_desc_t any = {0};

    dnnl_memory_desc_init_by_tag(&any, desc->ndims, desc->dims, dnnl_f32, dnnl_format_tag_any);
    return any;
}

int cpu_reorder(const struct cpu_model *model, const dnnl_memory_desc_t *from_desc,
                const float *from, const dnnl_memory_desc_t *to_desc, float *to)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_memory_t source = NULL, target = NULL;

    int code = cpu_check(dnnl_reorder_primitive_desc_create(&desc, from_desc, model->engine,
                                                            to_desc, model->engine, NULL),
                         "reorder");
    if (code == 0)
        code = cpu_check(dnnl_primitive_create(&primitive, desc), "reorder");
    /* oneDNN's handles are not const; a source is only read. */
    if (code == 0)
        code = cpu_check(
            dnnl_memory_create(&source, from_desc, model->engine, (void *)(uintptr_t)from),
            "reorder");
    if (code == 0)
        code = cpu_check(dnnl_memory_create(&target, to_desc, model->engine, to), "reorder");
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}};
    if (code == 0)
        code = cpu_check(dnnl_primitive_execute(primitive, model->stream, 2, arguments), "reorder");
    if (code == 0)
        code = cpu_check(dnnl_stream_wait(model->stream), "reorder");
    dnnl_memory_destroy(target);
    dnnl_memory_destroy(source);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    return code;
}
