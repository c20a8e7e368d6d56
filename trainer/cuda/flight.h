/* SPDX-License-Identifier: Apache-2.0
 *
 * flight: batches in flight, from their upload until their loss is reported. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_FLIGHT_H
#define IOBENCH_TRAINER_CUDA_FLIGHT_H

#include "trainer/cuda/program.h"

/* Where a batch is on the device until its first step has read it. */
struct cuda_slot {
    struct cuda_header *header;
    uint8_t *rows;
};

/* Moments of a batch in flight, by the device's clock: two on the upload stream, then those of the
 * compute stream. */
enum cuda_moment {
    CUDA_UPLOAD,
    CUDA_UPLOADED,
    CUDA_COMPUTE, /* begins, with an uploaded batch */
    CUDA_STEP_END,
    CUDA_DONE, /* the report is on the host */
    CUDA_UPDATE,
    CUDA_UPDATED,
    CUDA_MOMENTS,
};

struct cuda_flight {
    struct cuda_header *staged; /* pinned, as the report */
    struct cuda_report *report;
    void *moments[CUDA_MOMENTS];
    uint32_t count; /* images */
    bool learns, labelled, updated;
    uint64_t waited_ns; /* by the host for batches, before it started this one */
};

struct cuda_flights {
    struct cuda_model *model;
    uint32_t slot_count;
    struct cuda_slot *slots;
    struct cuda_flight *flights;       /* slot_count + 1 */
    uint64_t given, started, reported; /* passes */
    uint64_t waited_ns;                /* for batches since one was started */
    uint64_t rows_bytes, slot_bytes;   /* of a batch's rows; of all slots */
    bool is_stuck;                     /* the device does not answer: nothing may wait for it */
};

/* After the model. Close it in either case. */
int cuda_flights_open(struct cuda_flights *flights, struct cuda_model *model);
void cuda_flights_close(struct cuda_flights *flights);
/* Starts the upload of a batch into a free slot. */
int cuda_flight_give(struct cuda_flights *flights, const struct backend_pass *pass);
/* Waits until it is there, and the giver's again. */
int cuda_flight_given(struct cuda_flights *flights);
/* The oldest one that was not started; NULL: all were. */
const struct cuda_flight *cuda_flight_next(const struct cuda_flights *flights);
/* Puts it on the compute stream. The program is for as many images, to do the same. */
int cuda_flight_start(struct cuda_flights *flights, struct cuda_program *program,
                      double label_smoothing);
/* The update after the last one that was started begins, or is done. */
int cuda_flight_updated(struct cuda_flights *flights, bool done);
/* Waits for the oldest batch that was started. */
int cuda_flight_land(struct cuda_flights *flights, struct backend_loss *loss);

#endif
