/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/help/completion.h"
#include "cmd/families.h"
#include "cmd/help/help.h"

#include <stdio.h>
#include <string.h>

void completion_each(const struct command *command,
                     void (*visit)(const struct option_spec *row, const struct command *command))
{
    const struct option_spec *own = command->options;

    for (const struct option_spec *row = own; row && row->name; row++)
        visit(row, command);
    for (const struct option_spec *row = command_registry[0]->options; command->adopt && row->name;
         row++)
        if (!own || !option_find(own, row->name))
            visit(row, command);
    for (const struct option_spec *row = common_options; row->name; row++)
        visit(row, command);
}

bool completion_is_on(const struct option_spec *row)
{
    return row->type == OPTION_FLAG && row->fallback && strcmp(row->fallback, "yes") == 0;
}

const char *completion_values(const struct option_spec *row, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; row->type == OPTION_CHOICE && row->choices[i] && used < text_bytes; i++)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s ", row->choices[i]);
    for (const struct family *family = family_table; family->name; family++) {
        if (row->type != OPTION_TEXT || strcmp(family->option, row->name) != 0)
            continue;
        if (row->fallback && strcmp(row->fallback, "auto") == 0)
            used += (size_t)snprintf(text, text_bytes, "auto ");
        for (int i = 0; family->registry[i] && used < text_bytes; i++)
            used +=
                (size_t)snprintf(text + used, text_bytes - used, "%s ", family->registry[i]->name);
    }
    return text;
}
