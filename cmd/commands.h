/* SPDX-License-Identifier: Apache-2.0
 * The commands; only for cmd/registry.c. */
#ifndef IOBENCH_CMD_COMMANDS_H
#define IOBENCH_CMD_COMMANDS_H

#include "cmd/command.h"

extern const struct command command_run;
extern const struct command command_train;
extern const struct command command_infer;
extern const struct command command_net;
extern const struct command command_pack;
extern const struct command command_checkpoint;
extern const struct command command_verify;
extern const struct command command_inspect;
extern const struct command command_show;
extern const struct command command_list;
extern const struct command command_doctor;
extern const struct command command_compare;
extern const struct command command_gather;
extern const struct command command_shuffle;
extern const struct command command_sweep;
extern const struct command command_size;
extern const struct command command_study;
extern const struct command command_monitor;
extern const struct command command_plan;
extern const struct command command_ramp;
extern const struct command command_plot;
extern const struct command command_report;
extern const struct command command_completion;
extern const struct command command_help;

#endif
