/* SPDX-License-Identifier: Apache-2.0
 *
 * orders: makes the order of the next epoch on a thread of its own, while the loader works on the
 * one before. There are two plans, which take turns: the loader has one, the thread the other.
 *
 * Start, ask, take and stop from one thread; cancel from any.
 */
#ifndef IOBENCH_PIPELINE_LOADER_ORDERS_H
#define IOBENCH_PIPELINE_LOADER_ORDERS_H

#include "pipeline/result/recorder.h"
#include "shuffle/plan.h"

struct orders;

/* The plans are open, for the same scope, and the caller's. NULL with a reason. */
struct orders *orders_create(struct plan *first, struct plan *second, struct recorder *recorder);
void orders_destroy(struct orders *orders);

int orders_start(struct orders *orders);
void orders_cancel(struct orders *orders);
/* Waits for an order that is being made. The thread's failure, or 0. */
int orders_stop(struct orders *orders);

/* Begin to make the order of an epoch, which the next orders_take() is for. */
void orders_ask(struct orders *orders, uint64_t epoch);
/* The order that was asked for is made, or has failed: orders_take() would not wait. */
bool orders_ready(struct orders *orders);
/* The plan, at the start of the epoch; the other one goes back to the thread. Waits for it; asks
 * for it when nobody has. 0 or a negative errno with a reason. */
int orders_take(struct orders *orders, uint64_t epoch, struct plan **plan);

#endif
