/* SPDX-License-Identifier: Apache-2.0
 *
 * report_data: the results of a report: loads files, names the runs, and makes the data island of
 * the page. Files are untrusted. Main thread.
 */
#ifndef IOBENCH_CMD_REPORT_DATA_H
#define IOBENCH_CMD_REPORT_DATA_H

#include "report/pictures.h"

enum { REPORT_RESULTS = 256, REPORT_NAME_BYTES = 160 };

struct report_data {
    size_t count;
    struct picture_result results[REPORT_RESULTS]; /* jobs of all documents */
    char names[REPORT_RESULTS][REPORT_NAME_BYTES]; /* labels, made unique */
    json_t *documents;                             /* array: owns the jobs */
    json_t *shuffles;                              /* rows of iobench shuffle --json */
    json_t *others; /* inferences, checkpoints, fabrics: objects of "name" and "document" */
};

/* Add a file: a result, a document of a kind of report/documents.h, or the rows of iobench shuffle
 * --json. Returns 0 or a negative errno with a reason. */
int report_data_load(struct report_data *data, const char *path);
void report_data_release(struct report_data *data);

/* Return the island without charts: "results", "scaling", "comparisons", "others". NULL with a
 * reason. */
json_t *report_data_island(const struct report_data *data);

#endif
