/* SPDX-License-Identifier: Apache-2.0
 * What stands in for a device's streams, for those who put other work on them than copies. */
#ifndef IOBENCH_TESTS_CUDA_EMULATED_H
#define IOBENCH_TESTS_CUDA_EMULATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* run(work, count) in the order of the stream, by its thread, with a copy of the work; at once
 * where there is no stream. What is made of several kernels, with memory of its own or computation
 * between them, is started as one; its kernels are given no stream. */
#ifdef __cplusplus
extern "C"
#endif
    int
    emulated_start(void (*run)(const void *work, uint64_t count), const void *work, size_t bytes,
                   uint64_t count, void *stream);

#ifndef __cplusplus
/* ---- emulated_runtime.c ---- */

/* Ends the program: a device would refuse this, or do something else. */
_Noreturn void emulated_refuse(const char *what);
/* The same if this thread is capturing a graph. */
void emulated_refuse_captured(const char *what);
bool emulated_captures(const void *stream);
uint64_t emulated_late_ns(const void *stream); /* of its copies */
/* As emulated_start(), but behind what is started next: out of the order that a device keeps. */
int emulated_start_late(void (*run)(const void *work, uint64_t count), const void *work,
                        size_t bytes, uint64_t count, void *stream);
/* Counts the graphs that are captured from the stream: one more now, if one is, and less when it
 * goes.
 */
void emulated_count_graph(const void *stream, uint32_t *count);

/* ---- emulated_memory.c ---- */

/* Whether all of it is in one allocation of device memory. */
bool emulated_on_device(const void *memory, uint64_t bytes);
/* Allocations of device and pinned memory that were not freed. */
uint64_t emulated_pieces(void);
/* Any thread, unlike the rest. */
void *emulated_scratch(uint64_t bytes);
#endif

#endif
