/* SPDX-License-Identifier: Apache-2.0
 *
 * flight: batches in flight, from their upload until their loss is reported. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_FLIGHT_H
#define IOBENCH_TRAINER_CUDA_FLIGHT_H

#include "trainer/cuda/program.h"

/* Place of a batch on the device until its first step has read it. */
struct cuda_slot {
    struct cuda_header *header;
    uint8_t *rows;
};

struct cuda_flights {
    struct cuda_model *model;
    uint32_t slot_count;
    struct cuda_slot *slots;
    struct cuda_flight *flights;       /* slot_count + 1 */
    uint64_t given, started, reported; /* passes */
    uint64_t waited_ns;                /* time waited for batches since the last start */
    uint64_t rows_bytes, slot_bytes;   /* of a batch's rows; of all slots */
    bool is_stuck;                     /* the device does not answer: nothing may wait for it */
};

/* Open after the model. Close in either case. */
int cuda_flights_open(struct cuda_flights *flights, struct cuda_model *model);
void cuda_flights_close(struct cuda_flights *flights);
/* Start the upload of a batch into a free slot. */
int cuda_flight_give(struct cuda_flights *flights, const struct trainer_batch *batch);
/* Wait until the batch is uploaded and belongs to the caller again. */
int cuda_flight_given(struct cuda_flights *flights);
/* Return the oldest batch not yet started; NULL: all are. */
const struct cuda_flight *cuda_flight_next(const struct cuda_flights *flights);
/* Put it on the compute stream. The program is for the same number of images and the same pass. */
int cuda_flight_start(struct cuda_flights *flights, struct cuda_program *program);
/* The update after the batch started last begins, or is done. */
int cuda_flight_updated(struct cuda_flights *flights, bool done);
/* Wait for the oldest started batch. */
int cuda_flight_land(struct cuda_flights *flights, struct backend_loss *loss);
/* With no batch in flight: wait for the last update and report its time, once. */
int cuda_flights_settle(struct cuda_flights *flights, struct trainer_times *times);

#endif
