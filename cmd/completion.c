/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench completion: a bash completion out of the option tables. All words stand in the script,
 * so that completing starts no program.
 */
#include "cmd/commands.h"
#include "cmd/families.h"
#include "cmd/help.h"

#include <stdio.h>
#include <string.h>

static void print_words(const struct option_spec *table)
{
    for (const struct option_spec *row = table; row && row->name; row++) {
        bool on = row->type == OPTION_FLAG && row->fallback && strcmp(row->fallback, "yes") == 0;
        printf(" --%s%s%s", on ? "no-" : "", row->name,
               row->type == OPTION_FLAG || row->implied ? "" : "=");
        if (row->implied)
            printf(" --%s=", row->name);
    }
}

/* Values of --option=: choices, or the names of a family. */
static void print_values(const struct option_spec *table)
{
    for (const struct option_spec *row = table; row && row->name; row++) {
        if (row->type != OPTION_CHOICE)
            continue;
        printf("        --%s) words=\"", row->name);
        for (int i = 0; row->choices[i]; i++)
            printf("%s%s", i ? " " : "", row->choices[i]);
        printf("\" ;;\n");
    }
}

static int completion_run(const struct invocation *invocation)
{
    (void)invocation;
    printf("# bash completion of iobench %s; made by 'iobench completion'\n"
           "_iobench() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local words= option= i command=%s\n"
           "    COMPREPLY=()\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n",
           PACKAGE_VERSION, command_registry[0]->name);
    for (int i = 0; command_registry[i]; i++)
        printf("        %s) command=%s; break ;;\n", command_registry[i]->name,
               command_registry[i]->name);
    /* "=" is a word of its own for bash: --x=y arrives as "--x" "=" "y". */
    printf("        esac\n    done\n"
           "    if [[ $current == = ]]; then option=$previous current=\n"
           "    elif [[ $previous == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    elif [[ $previous == --* ]]; then option=$previous\n"
           "    fi\n"
           "    case $option in\n");
    for (const struct family *family = family_table; family->name; family++) {
        printf("        --%s) words=\"%s", family->option,
               strcmp(family->option, "format") == 0 || strcmp(family->option, "reader") == 0
                   ? "auto"
                   : "");
        for (int i = 0; family->registry[i]; i++)
            printf(" %s", family->registry[i]->name);
        printf("\" ;;\n");
    }
    for (int i = 0; command_registry[i]; i++)
        print_values(command_registry[i]->options);
    printf("    esac\n"
           "    if [[ -z $words && $current == -* ]]; then\n"
           "        case $command in\n");
    for (int i = 0; command_registry[i]; i++) {
        printf("        %s) words=\"", command_registry[i]->name);
        print_words(command_registry[i]->options);
        print_words(common_options);
        printf("\" ;;\n");
    }
    printf("        esac\n"
           "    elif [[ -z $words && $COMP_CWORD == 1 ]]; then\n"
           "        words=\"");
    for (int i = 0; command_registry[i]; i++)
        printf("%s%s", i ? " " : "", command_registry[i]->name);
    printf("\"\n"
           "    fi\n"
           "    [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
           "    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "}\n"
           "complete -F _iobench iobench\n");
    return COMMAND_OK;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print the bash completion",
    .examples = "source <(iobench completion)\tfor this shell\n",
    .run = completion_run,
};
