/* SPDX-License-Identifier: Apache-2.0
 *
 * size_page: shows what a simulated cluster does: a page, a table, JSON, a chart, and the job file
 * of an acceptance test. Main thread.
 */
#ifndef IOBENCH_CMD_SIZE_PAGE_H
#define IOBENCH_CMD_SIZE_PAGE_H

#include "cmd/size/answer.h"

#include <jansson.h>

enum { SIZE_TITLE_BYTES = 128, SIZE_DOUBTS_MOST = 8, SIZE_DOUBT_BYTES = 256 };
enum { SIZE_FORMS_MOST = 8, SIZE_FORM_TITLE_BYTES = 40 };

/* The same data stored otherwise, as a [form NAME] section of a network's profile says: bytes are
 * exchanged for CPU time. */
struct size_form {
    char title[SIZE_FORM_TITLE_BYTES];
    struct quantity sample_bytes, decode_s;
    struct sizing_answer answer; /* without intervals */
};

struct size_case {
    double gpus;
    char gpu[SIZE_TITLE_BYTES], network[SIZE_TITLE_BYTES], node[SIZE_TITLE_BYTES],
        storage[SIZE_TITLE_BYTES];
    double recorded_s, recorded_bytes_per_s, recorded_peak_bytes_per_s; /* 0: not recorded */
    struct sizing_inputs inputs;
    struct sizing_answer answer;
    struct size_form forms[SIZE_FORMS_MOST]; /* of the data, which are not recorded */
    unsigned form_count;
    char doubts[SIZE_DOUBTS_MOST][SIZE_DOUBT_BYTES]; /* of the profiles */
    unsigned doubt_count;
};

struct size_table {
    struct size_case *cases; /* by storage, then by GPUs */
    size_t count;
    int storages;
};

void size_page_print(const struct size_case *cluster);
void size_page_table(const struct size_table *table);
json_t *size_page_json(const struct size_table *table);
/* Returns 0 or a negative errno with a reason. */
int size_page_chart(const struct size_table *table, const char *path);
int size_page_acceptance(const struct size_case *cluster, const char *path);

#endif
