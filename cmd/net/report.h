/* SPDX-License-Identifier: Apache-2.0
 * net_report: the tables and the JSON of `iobench net`. Rank 0, main thread. */
#ifndef IOBENCH_CMD_NET_REPORT_H
#define IOBENCH_CMD_NET_REPORT_H

#include "cmd/net/beside.h"
#include "cmd/net/survey.h"
#include "pipeline/result/result.h"

#include <jansson.h>

struct net_asked {
    const struct survey_settings *settings;
    const struct ranks *ranks;
    const char *transport;           /* as chosen */
    const char *command;             /* the command line */
    struct result verdict;           /* of all ranks; besides, the machine of rank 0 */
    const struct net_beside *beside; /* NULL: not asked for */
    struct timeline *timeline;       /* of the machines meanwhile; NULL: unknown */
};

/* Returns 0 or, with nothing printed, -ENOMEM with a reason. */
int net_report_text(const struct net_asked *asked, const struct fabric_survey *survey);
/* Return the bus bandwidth of all-reduce of the largest message, bytes/s; NAN: not measured. */
double net_report_all_reduce(const struct fabric_survey *survey);
/* Return the sealed document; NULL with a reason. */
json_t *net_report_json(const struct net_asked *asked, const struct fabric_survey *survey);

#endif
