/* SPDX-License-Identifier: Apache-2.0
 *
 * The time series of a result as sparklines.
 */
#include "report/report.h"

#include "base/bytes.h"
#include "report/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPARKS = 50, INDENT = 11 };

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[] = {".", ":", "-", "=", "+", "*", "#", "@"};

double report_spark(const struct timeline *timeline, const char *key, char *text)
{
    const uint32_t column = timeline_find(timeline, key);
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    double from_s = NAN, to_s = NAN, means[SPARKS], most = 0;
    const char *locale = NULL; /* of the environment: setlocale() needs the locale's files */

    for (size_t i = 0; i < 3 && (!locale || !*locale); i++)
        locale = getenv(names[i]);
    const bool is_utf8 = locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
    const char *const *const sparks = is_utf8 ? blocks : letters;
    for (uint32_t i = 0; i < timeline->phase_count; i++)
        if (strcmp(timeline->phases[i].name, "epoch") == 0) {
            from_s = isnan(from_s) ? timeline->phases[i].from_s : from_s;
            to_s = timeline->phases[i].to_s;
        }
    text[0] = '\0';
    if (column == timeline->column_count || timeline->row_count == 0 || isnan(from_s))
        return 0;
    for (int i = 0; i < SPARKS; i++) {
        means[i] = timeline_mean(timeline, column, from_s + (to_s - from_s) * i / SPARKS,
                                 from_s + (to_s - from_s) * (i + 1) / SPARKS);
        most = fmax(most, means[i]); /* fmax() ignores NAN */
    }
    for (int i = 0; i < SPARKS; i++) {
        const double share = most > 0 ? means[i] / most : 0;
        strcat(text, !(share > 0) ? " " : sparks[share >= 1 ? 7 : (int)(share * 8)]);
    }
    return most;
}

static const char *size_text(double bytes, char *text)
{
    if (isfinite(bytes))
        bytes_text((uint64_t)fmax(bytes, 0), text, WORDS_BYTES);
    else
        snprintf(text, WORDS_BYTES, "?");
    return text;
}

static void print_provenance(FILE *stream, const struct provenance *provenance)
{
    char read[WORDS_BYTES], cache[WORDS_BYTES], local[WORDS_BYTES], fabric[WORDS_BYTES];
    char ahead[3 * WORDS_BYTES] = "";

    if (provenance->ahead > 0.005 * provenance->read)
        snprintf(ahead, sizeof ahead, " - %s ahead", size_text(provenance->ahead, read));
    words_printf(stream, "  Sources", INDENT,
                 "%s read = %s page cache + %s local disk + %s fabric%s",
                 size_text(provenance->read, read), size_text(provenance->page_cache, cache),
                 size_text(provenance->local, local), size_text(provenance->fabric, fabric), ahead);
    if (!(provenance->fabric > 0 || provenance->gradients > 0))
        return;
    ahead[0] = '\0';
    if (provenance->gradients > 0)
        snprintf(ahead, sizeof ahead, "; gradients: %s expected, %s sent in total",
                 size_text(provenance->gradients, cache), size_text(provenance->sent, local));
    words_printf(stream, "", INDENT, "received - sent = %s%s%s", provenance->excess < 0 ? "-" : "",
                 size_text(fabs(provenance->excess), read), ahead);
}

/* One line per node, with clocks relative to the first node's. */
static void print_nodes(FILE *stream, const struct timeline *timeline)
{
    enum { NODES_SHOWN = 16 };
    char text[6][WORDS_BYTES], line[4 * WORDS_BYTES];

    if (timeline->node_count == 0)
        return;
    fprintf(stream, "  %-12s%11s%11s%11s%11s%11s%11s\n", "Nodes", "read", "page cache",
            "local disk", "fabric", "received", "sent");
    for (uint32_t i = 0; i < timeline->node_count && i < NODES_SHOWN; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        const struct provenance *provenance = &node->timeline->provenance;
        fprintf(stream, "    %-10.10s%11s%11s%11s%11s%11s%11s\n", node->host,
                size_text(provenance->read, text[0]), size_text(provenance->page_cache, text[1]),
                size_text(provenance->local, text[2]), size_text(provenance->fabric, text[3]),
                size_text(provenance->received, text[4]), size_text(provenance->sent, text[5]));
    }
    if (timeline->node_count > NODES_SHOWN)
        fprintf(stream, "           and %u more\n", timeline->node_count - NODES_SHOWN);
    double most_s = 0, uncertain_s = 0;
    for (uint32_t i = 1; i < timeline->node_count; i++) {
        most_s = fmax(most_s, fabs(timeline->nodes[i].clock_offset_s));
        uncertain_s = fmax(uncertain_s, timeline->nodes[i].clock_uncertainty_s);
    }
    snprintf(line, sizeof line, "times of day differ by up to %s; series aligned within %s",
             words_duration((uint64_t)(most_s * 1e9), text[0]),
             words_duration((uint64_t)(uncertain_s * 1e9), text[1]));
    words_print(stream, "  Clocks", INDENT, line);
}

void report_timeline_text(FILE *stream, const struct timeline *timeline)
{
    static const struct {
        const char *name, *key;
    } lines[] = {{"read", "read_bytes_per_s"},
                 {"disk", "from_local_bytes_per_s"},
                 {"fabric", "from_fabric_bytes_per_s"}};
    const char *heading = "Series";
    char spark[REPORT_SPARK_BYTES], rate[WORDS_BYTES];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const double most = report_spark(timeline, lines[i].key, spark);
        if (most < 1)
            continue;
        fprintf(stream, "  %-9s%-7s%s %s MB/s\n", heading, lines[i].name, spark,
                words_rate(most / 1e6, rate));
        heading = "";
    }
    if (timeline->provenance.read > 0)
        print_provenance(stream, &timeline->provenance);
    print_nodes(stream, timeline);
}
