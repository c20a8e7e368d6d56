/* SPDX-License-Identifier: Apache-2.0
 *
 * resumed: what a training depends on besides its data, as text in its checkpoints, so that a
 * resumed training can tell how it differs from one that was never interrupted. Any thread.
 */
#ifndef IOBENCH_PIPELINE_JOBS_RESUMED_H
#define IOBENCH_PIPELINE_JOBS_RESUMED_H

#include "pipeline/jobs/train.h"

/* Write a line "option value" each. shuffle, decoder: as chosen, with their options. */
void resumed_describe(const struct train_job *job, const struct train_result *result,
                      const char *decoder, char text[CHECKPOINT_SETTINGS_BYTES]);

/* Note each setting that is another than in a checkpoint; what that does not name is not compared.
 */
void resumed_note_differences(const char *before, const char *now, struct result *result);

#endif
