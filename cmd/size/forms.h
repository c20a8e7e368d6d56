/* SPDX-License-Identifier: Apache-2.0
 *
 * size_forms: the same data stored otherwise, as [form NAME] sections of a network's profile say:
 * bytes are exchanged for CPU time. Main thread.
 */
#ifndef IOBENCH_CMD_SIZE_FORMS_H
#define IOBENCH_CMD_SIZE_FORMS_H

#include "cmd/size/answer.h"

#include <jansson.h>

enum { SIZE_FORMS_MOST = 8, SIZE_FORM_TITLE_BYTES = 40 };

struct size_form {
    char title[SIZE_FORM_TITLE_BYTES];
    struct quantity sample_bytes, decode_s;
    struct sizing_answer answer; /* without intervals */
};

struct size_forms {
    struct size_form list[SIZE_FORMS_MOST];
    unsigned count;
};

/* Find the forms of a network's profile. Returns 0, or -EINVAL with a reason. */
int size_forms_read(struct size_forms *forms, const struct ini *network);
/* Size the cluster of the request with each of them. Returns 0 or a negative errno. */
int size_forms_answer(struct size_forms *forms, const struct sizing_request *request);

/* Print a table, the request's answer first; nothing if there are no forms. */
void size_forms_print(const struct size_forms *forms, const struct sizing_answer *answer);
json_t *size_forms_json(const struct size_forms *forms);

#endif
