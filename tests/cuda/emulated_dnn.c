/* SPDX-License-Identifier: Apache-2.0
 *
 * No cuDNN, for trainer/cuda/dnn.h: every convolution is the plain kernel's.
 */
#include "trainer/cuda/dnn.h"

#include "base/fail.h"

#include <errno.h>
#include <stddef.h>

int dnn_open(struct dnn **dnn, const struct dnn_site *site)
{
    (void)site;
    *dnn = NULL;
    return 0;
}

void dnn_close(struct dnn *dnn)
{
    (void)dnn;
}

const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code)
{
    (void)dnn;
    (void)shape;
    *code = fail(ENOTSUP, "no cuDNN on the host");
    return NULL;
}

uint64_t dnn_workspace_bytes(const struct dnn_plan *plan)
{
    (void)plan;
    return 0;
}

int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors)
{
    (void)dnn;
    (void)plan;
    (void)tensors;
    return fail(ENOTSUP, "no cuDNN on the host");
}

int dnn_keep(struct dnn *dnn)
{
    (void)dnn;
    return 0;
}
