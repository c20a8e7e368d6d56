/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/manual.h"

#include "cmd/command.h"
#include "cmd/families.h"
#include "cmd/help.h"

#include <string.h>

/* Text with what troff would take for its own escaped: backslashes, leading dots and quotes, and
 * dashes that must stay ASCII. */
static void print_text(FILE *stream, const char *text)
{
    bool at_start = true;

    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            fputs("\\&", stream);
        if (*text == '\\')
            fputs("\\e", stream);
        else if (*text == '-')
            fputs("\\-", stream);
        else
            fputc(*text, stream);
        at_start = *text == '\n';
    }
}

static void print_line(FILE *stream, const char *before, const char *text, const char *after)
{
    fputs(before, stream);
    print_text(stream, text);
    fputs(after, stream);
}

static void print_row(FILE *stream, const struct option_spec *row, const char *dashes)
{
    bool flag = row->type == OPTION_FLAG;
    bool on = flag && row->fallback && strcmp(row->fallback, "yes") == 0;

    fputs(".TP\n", stream);
    if (*dashes && row->letter)
        fprintf(stream, "\\fB\\-%c\\fR, ", row->letter);
    print_line(stream, "\\fB", dashes, "");
    if (on && *dashes)
        fputs("[no\\-]", stream);
    print_line(stream, "", row->name, "\\fR");
    if (!flag) {
        fputs(row->implied ? "[=" : "=", stream);
        print_line(stream, "\\fI", help_metavar(row), "\\fR");
        fputs(row->implied ? "]" : "", stream);
    }
    print_line(stream, "\n", row->summary, "");
    for (int i = 0; row->type == OPTION_CHOICE && row->choices[i]; i++) {
        print_line(stream, i ? ", \\fB" : ": \\fB", row->choices[i], "\\fR");
    }
    if (row->fallback && !(flag && *dashes))
        print_line(stream, " (default ", row->fallback, ")");
    fputs(".\n", stream);
}

static void print_options(FILE *stream, const struct option_spec *table, const char *dashes)
{
    for (const struct option_spec *row = table; row && row->name; row++) {
        if (row->section && *dashes)
            print_line(stream, ".PP\n\\fB", row->section, "\\fR\n");
        print_row(stream, row, dashes);
    }
}

static void print_examples(FILE *stream, const char *examples)
{
    while (examples && *examples) {
        char line[512];
        size_t length = strcspn(examples, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, examples);
        char *tab = strchr(line, '\t');
        if (tab)
            *tab = '\0';
        print_line(stream, ".TP\n\\fB", line, "\\fR\n");
        print_line(stream, "", tab ? tab + 1 : "", "\n");
        examples += length + (examples[length] == '\n');
    }
}

static void print_command(FILE *stream, const struct command *command)
{
    print_line(stream, ".SS \"iobench ", command->name, "");
    if (command->operands)
        print_line(stream, " ", command->operands, "");
    fputs("\"\n", stream);
    print_text(stream, command->description ? command->description : command->summary);
    fputs(command->description ? "\n" : ".\n", stream);
    print_options(stream, command->options, "--");
}

static void print_plugins(FILE *stream)
{
    fputs(".SH PLUG-INS\nA plug-in is named as \\fINAME\\fR or "
          "\\fINAME\\fR:\\fIOPTION\\fR=\\fIVALUE\\fR,...; the first option may be given without "
          "its name.\n",
          stream);
    for (const struct family *family = family_table; family->name; family++) {
        print_line(stream, ".SS \"--", family->option, ": ");
        print_line(stream, "", family->summary, "\"\n");
        for (int i = 0; family->registry[i]; i++) {
            const struct plugin *plugin = family->registry[i];
            print_line(stream, ".TP\n\\fB", plugin->name, "\\fR\n");
            print_line(stream, "", plugin->summary, ".\n");
            if (plugin->options && plugin->options->name)
                fputs(".RS\n", stream);
            print_options(stream, plugin->options, "");
            if (plugin->options && plugin->options->name)
                fputs(".RE\n", stream);
        }
    }
}

void manual_print(FILE *stream)
{
    fprintf(stream,
            ".\\\" Made by 'iobench help --man'; do not edit.\n"
            ".TH IOBENCH 1 \"\" \"iobench %s\" \"User Commands\"\n"
            ".SH NAME\niobench \\- measures whether storage keeps the GPUs fed\n"
            ".SH SYNOPSIS\n\\fBiobench\\fR [\\fICOMMAND\\fR] [\\fIOPTIONS\\fR] "
            "[\\fIOPERANDS\\fR]\n.br\n\\fBiobench\\fR \\fIJOBFILE.ini\\fR\n"
            ".SH DESCRIPTION\n",
            PACKAGE_VERSION);
    fputs("Reads a data set as the training of a network does, image by image in a shuffled order "
          "from RecordIO, TFRecord, LMDB, tar or plain files, decodes it and delivers it in "
          "batches. It says how many samples a second arrive, how many GPUs that feeds, who "
          "waited for whom, and whether the caches were really empty. Without a command, "
          "\\fBrun\\fR is meant.\n.SH COMMANDS\n",
          stream);
    for (int i = 0; command_registry[i]; i++)
        print_command(stream, command_registry[i]);
    fputs(".SS \"Any command\"\n", stream);
    for (const struct option_spec *row = common_options; row->name; row++)
        print_row(stream, row, "--");
    print_plugins(stream);
    fputs(".SH \"JOB FILES\"\nAs for \\fBfio\\fR(1): each section is a job and holds options of "
          "\\fBiobench run\\fR without dashes, one a line, as \\fIoption\\fR=\\fIvalue\\fR or "
          "alone; what stands in [global] goes for all that follow; lines that begin with # or ; "
          "are comments. Options of the command line have the last word.\n"
          ".PP\n.nf\n[global]\ndata=/mnt/imagenet\ndrop\\-caches=strict\n\n[one\\-file]\n"
          "shuffle=epoch\n\n[buffered]\nshuffle=buffer:10000\n.fi\n"
          ".SH EXAMPLES\n",
          stream);
    for (int i = 0; command_registry[i]; i++)
        print_examples(stream, command_registry[i]->examples);
    fputs(".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\nIt worked, and the result is valid.\n"
          ".TP\n\\fB1\\fR\nIt failed, or the result is not valid; the headline says why.\n"
          ".TP\n\\fB2\\fR\nIt was asked wrongly; nothing was done.\n"
          ".SH FILES\n.TP\n\\fB$XDG_CACHE_HOME/iobench\\fR, \\fB~/.cache/iobench\\fR\n"
          "The synthetic data set that is used without \\fB\\-\\-data\\fR. It may be removed at "
          "any time.\n"
          ".SH UNITS\nSizes: k, m, g and KiB, MiB, GiB are powers of 1024; KB, MB, GB are powers "
          "of 1000. Times: a bare number is seconds; ns, us, ms, s, m, h, d.\n"
          ".SH \"SEE ALSO\"\n\\fBfio\\fR(1), \\fBiostat\\fR(1)\n",
          stream);
}
