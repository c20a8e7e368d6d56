/* SPDX-License-Identifier: Apache-2.0
 *
 * latency: latencies of reads as text and JSON: of all, by the epoch that needs them,
 * and in evaluations. kinds:
 * one histogram per result_epoch_kind. Any thread.
 */
#ifndef IOBENCH_REPORT_LATENCY_H
#define IOBENCH_REPORT_LATENCY_H

#include "base/histogram.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* docs/json.md, "read_latency"; with quantiles for curves. */
json_t *latency_json(const struct histogram *all, const struct histogram *kinds, bool quantiles);

/* "p50 3.16 ms, ..., max 10.5 ms" of all. Returns text. */
char *latency_text(const struct histogram *all, char *text, size_t bytes);
/* "; first epoch p50 ..., p99 ...; later epochs ...", or "" if there was one epoch. Returns text.
 */
char *latency_text_by_epoch(const struct histogram *kinds, char *text, size_t bytes);

#endif
