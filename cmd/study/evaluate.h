/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate: the expressions of a study's tables and sentences, over JSON (docs/studies/README.md,
 * "Expressions"). Main thread.
 */
#ifndef IOBENCH_CMD_STUDY_EVALUATE_H
#define IOBENCH_CMD_STUDY_EVALUATE_H

#include <jansson.h>

/* A variable; those of `outer` are hidden by the same name. The value is borrowed. */
struct evaluate_scope {
    const struct evaluate_scope *outer;
    const char *name;
    json_t *value;
};

struct evaluate_node;

/* Return the expression, for evaluate_release(); NULL with a reason. */
struct evaluate_node *evaluate_parse(const char *text);
void evaluate_release(struct evaluate_node *node);

/* A name is a variable, else a member of the variable "it". Returns the value, for json_decref(),
 * or NULL with a reason: what is missing among the results. */
json_t *evaluate(const struct evaluate_node *node, const struct evaluate_scope *scope);

/* Return a number as a sentence shows it, or a text, to be freed; NULL with a reason for anything
 * else. */
char *evaluate_shown(const json_t *value);

#endif
