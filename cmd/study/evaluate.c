/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/words.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 200, NODES_MOST = 1000, POINTS_MOST = 200 };

enum node_kind {
    NUMBER,
    LITERAL, /* text */
    TEXT,    /* children: literals, and values to be shown */
    NAME,
    CALL,
    LIST,
    MEMBER, /* of the first child, named by the second */
    TAIL,   /* of the first child, from the second on */
    BINARY, /* text: the operation */
    LET,    /* text: the name; children: its value, and where it holds */
    IF,
    ROOT, /* the last node made; its child is the whole expression */
};

struct evaluate_node {
    enum node_kind kind;
    char *text;
    double number;
    struct evaluate_node *first, *next;
    struct evaluate_node *made; /* the node made before this one */
};

/* ---- parsing ---- */

/* After the first failure nodes are still made, and released together. */
struct parser {
    const char *at;
    unsigned depth, nodes;
    bool has_failed;
    struct evaluate_node *last_made;
    struct evaluate_node spare; /* out of memory */
};

static void refuse(struct parser *parser, const char *expected)
{
    if (!parser->has_failed)
        fail(EINVAL, "expected %s before '%.30s'", expected, *parser->at ? parser->at : "the end");
    parser->has_failed = true;
    parser->at += strlen(parser->at);
}

static struct evaluate_node *make_node(struct parser *parser, enum node_kind kind, const char *text,
                                       size_t length)
{
    struct evaluate_node *node = memory_zeroed(sizeof *node);

    if (!node) {
        parser->has_failed = true;
        return &parser->spare;
    }
    if (++parser->nodes > NODES_MOST) /* bounds the recursion of evaluate() */
        refuse(parser, "a shorter expression");
    *node = (struct evaluate_node){
        .kind = kind, .text = text ? strndup(text, length) : NULL, .made = parser->last_made};
    if (text && !node->text) {
        fail(ENOMEM, "out of memory for an expression");
        parser->has_failed = true;
    }
    return parser->last_made = node;
}

static struct evaluate_node *make_pair(struct parser *parser, enum node_kind kind, const char *text,
                                       size_t length, struct evaluate_node *first,
                                       struct evaluate_node *second)
{
    struct evaluate_node *node = make_node(parser, kind, text, length);

    node->first = first;
    first->next = second;
    return node;
}

static void skip_blanks(struct parser *parser)
{
    parser->at += strspn(parser->at, " \t\n");
}

/* The length of a name at the start of a text; 0: none. */
static size_t name_length(const char *text)
{
    size_t length = 0;

    while (isalpha((unsigned char)text[length]) || text[length] == '_' ||
           (length && isdigit((unsigned char)text[length])))
        length++;
    return length;
}

/* Take a symbol or a word, if it is next. */
static bool takes(struct parser *parser, const char *symbol)
{
    const size_t length = strlen(symbol);

    skip_blanks(parser);
    if (strncmp(parser->at, symbol, length) != 0 ||
        (name_length(symbol) && name_length(parser->at) != length))
        return false;
    parser->at += length;
    return true;
}

static void expect(struct parser *parser, const char *symbol)
{
    if (!takes(parser, symbol))
        refuse(parser, symbol);
}

static struct evaluate_node *parse_any(struct parser *parser);

/* Parse expressions up to `end`, as children of the node. */
static struct evaluate_node *parse_list(struct parser *parser, struct evaluate_node *node,
                                        const char *end)
{
    struct evaluate_node **next = &node->first;

    if (takes(parser, end))
        return node;
    do {
        *next = parse_any(parser);
        next = &(*next)->next;
    } while (takes(parser, ","));
    expect(parser, end);
    return node;
}

static struct evaluate_node *parse_primary(struct parser *parser)
{
    struct evaluate_node *node;
    char *end;

    if (takes(parser, "\"")) {
        /* Parse what follows a quote: literals and {EXPRESSION} up to the closing one. */
        struct evaluate_node *text = make_node(parser, TEXT, NULL, 0), **next = &text->first;
        while (*parser->at && *parser->at != '"') {
            const size_t length = strcspn(parser->at, "\"{");
            if (length) {
                *next = make_node(parser, LITERAL, parser->at, length);
                parser->at += length;
            } else {
                parser->at++;
                *next = parse_any(parser);
                expect(parser, "}");
            }
            next = &(*next)->next;
        }
        if (*parser->at)
            parser->at++;
        else
            refuse(parser, "a quote");
        return text;
    }
    if (takes(parser, "["))
        return parse_list(parser, make_node(parser, LIST, NULL, 0), "]");
    if (takes(parser, "(")) {
        node = parse_any(parser);
        expect(parser, ")");
        return node;
    }
    const size_t length = name_length(parser->at);
    if (length) {
        const bool is_call = parser->at[length] == '(';
        node = make_node(parser, is_call ? CALL : NAME, parser->at, length);
        parser->at += length + is_call;
        return is_call ? parse_list(parser, node, ")") : node;
    }
    node = make_node(parser, NUMBER, NULL, 0);
    node->number = strtod(parser->at, &end);
    if (end == parser->at)
        refuse(parser, "a value");
    else
        parser->at = end;
    return node;
}

static struct evaluate_node *parse_binary(struct parser *parser, unsigned level)
{
    /* In order of precedence, the weakest first. In a row, longer operators come before their own
     * prefixes. */
    static const char *const operations[][7] = {
        {"or"}, {"and"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/"}};

    if (level == sizeof operations / sizeof *operations) {
        struct evaluate_node *node = parse_primary(parser), *key;
        for (;;) {
            if (takes(parser, ".")) {
                const size_t length = name_length(parser->at);
                key = make_node(parser, LITERAL, parser->at, length);
                parser->at += length;
                node = make_pair(parser, MEMBER, NULL, 0, node, key);
                if (length == 0)
                    refuse(parser, "a name");
            } else if (takes(parser, "[")) {
                key = parse_any(parser);
                node = make_pair(parser, takes(parser, ":") ? TAIL : MEMBER, NULL, 0, node, key);
                expect(parser, "]");
            } else {
                return node;
            }
        }
    }
    struct evaluate_node *node = parse_binary(parser, level + 1);
    for (size_t i = 0; operations[level][i];) {
        const char *operation = operations[level][i++];
        if (!takes(parser, operation))
            continue;
        node = make_pair(parser, BINARY, operation, strlen(operation), node,
                         parse_binary(parser, level + 1));
        i = 0;
    }
    return node;
}

static struct evaluate_node *parse_any(struct parser *parser)
{
    struct evaluate_node *node;

    if (++parser->depth > DEPTH_MOST)
        refuse(parser, "a shallower expression");
    if (takes(parser, "let")) {
        skip_blanks(parser);
        const char *name = parser->at;
        const size_t length = name_length(name);
        parser->at += length;
        if (length == 0)
            refuse(parser, "a name");
        expect(parser, "=");
        struct evaluate_node *value = parse_any(parser);
        expect(parser, ";");
        node = make_pair(parser, LET, name, length, value, parse_any(parser));
    } else if (takes(parser, "if")) {
        struct evaluate_node *condition = parse_any(parser);
        expect(parser, "then");
        struct evaluate_node *yes = parse_any(parser);
        expect(parser, "else");
        yes->next = parse_any(parser);
        node = make_pair(parser, IF, NULL, 0, condition, yes);
    } else {
        node = parse_binary(parser, 0);
    }
    parser->depth--;
    return node;
}

/* ---- values ---- */

static double number_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Whole numbers are integers, which tables show as they are. */
static json_t *number(double value)
{
    if (!isfinite(value))
        return json_null();
    return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                       : json_real(value);
}

static json_t *missing(void)
{
    fail(ENODATA, "a figure is missing");
    return NULL;
}

char *evaluate_shown(const json_t *value)
{
    const double shown = number_of(value), size = fabs(shown);
    char digits[WORDS_BYTES];

    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (!isfinite(shown)) {
        missing();
        return NULL;
    }
    if (size >= 1e18) /* no count */
        return file_format_path("%.15g", shown);
    if (size >= 99.95)
        return file_format_path("%s%s", shown < 0 ? "-" : "",
                                words_count((uint64_t)round(size), digits));
    return size >= 9.995 ? file_format_path("%.15g", round(shown * 10) / 10)
                         : file_format_path("%.15g", round(shown * 100) / 100);
}

/* Numbers, then texts; 0 for anything else. */
static int compare(const json_t *one, const json_t *other)
{
    if (json_is_string(one) && json_is_string(other))
        return strcmp(json_string_value(one), json_string_value(other));
    return (number_of(one) > number_of(other)) - (number_of(one) < number_of(other));
}

/* Make a json_t of a text and free the text; NULL: NULL. */
static json_t *take_text(char *text)
{
    json_t *value = text ? json_text(text) : NULL;

    free(text);
    return value;
}

static json_t *find(const struct evaluate_scope *scope, const char *name)
{
    const struct evaluate_scope *it = NULL;

    for (; scope; scope = scope->outer) {
        if (strcmp(scope->name, name) == 0)
            return scope->value;
        it = !it && strcmp(scope->name, "it") == 0 ? scope : it;
    }
    return it ? json_object_get(it->value, name) : NULL;
}

/* ---- functions ---- */

enum { ARGUMENTS = 5 };

/* Arguments of a call: nodes, and the values of the first ones. */
struct arguments_of_call {
    const struct evaluate_node *nodes[ARGUMENTS];
    json_t *values[ARGUMENTS];
    const struct evaluate_scope *scope;
};

static const char *text_at(const struct arguments_of_call *call, size_t index)
{
    const char *text = json_string_value(call->values[index]);

    return text ? text : "";
}

enum statistic { COUNT, SUM, MEAN, MIN, MAX, DEVIATION };

/* Return a statistic of the numbers in a list; NAN if there are none. */
static double statistic_of(enum statistic kind, const json_t *list)
{
    double sum = 0, mean = 0, squares = 0, least = NAN, most = NAN, count = 0;
    const json_t *member;
    size_t i;

    if (kind == COUNT)
        return (double)json_array_size(list);
    json_array_foreach(list, i, member)
    {
        const double value = number_of(member), apart = value - mean;
        if (!isfinite(value))
            continue;
        sum += value;
        mean += apart / ++count; /* by Welford: a difference of large squares says nothing */
        squares += apart * (value - mean);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    return count == 0          ? NAN
           : kind == MIN       ? least
           : kind == MAX       ? most
           : kind == MEAN      ? sum / count
           : kind == DEVIATION ? sqrt(squares / count)
                               : sum;
}

/* Evaluate the second argument for each member of the first. Result: the members for which it
 * holds, its values, the members sorted by it, or lists of those for which it is equal. */
enum treatment { WHERE, OF, SORT, GROUP };

static json_t *treat_members(enum treatment treatment, const struct arguments_of_call *call)
{
    json_t *result = json_array(), *keys = json_array(), *member;
    size_t i;

    json_array_foreach(call->values[0], i, member)
    {
        const struct evaluate_scope scope = {call->scope, "it", member};
        json_t *value = evaluate(call->nodes[1], &scope);
        size_t at = 0;
        if (!value) {
            json_decref(result);
            json_decref(keys);
            return NULL;
        }
        if (treatment == SORT)
            for (at = json_array_size(keys);
                 at > 0 && compare(json_array_get(keys, at - 1), value) > 0; at--)
                ;
        else if (treatment == GROUP)
            while (at < json_array_size(keys) && compare(json_array_get(keys, at), value) < 0)
                at++;
        const bool is_known =
            at < json_array_size(keys) && json_equal(json_array_get(keys, at), value);
        if (treatment == OF) {
            json_array_append(result, value);
        } else if (treatment == SORT) {
            json_array_insert(result, at, member);
            json_array_insert(keys, at, value);
        } else if (treatment == WHERE && json_is_true(value)) {
            json_array_append(result, member);
        } else if (treatment == GROUP) {
            if (!is_known) {
                json_array_insert_new(result, at, json_array());
                json_array_insert(keys, at, value);
            }
            json_array_append(json_array_get(result, at), member);
        }
        json_decref(value);
    }
    json_decref(keys);
    return result;
}

/* Add speed-up and efficiency to rows, against the row of the same group where `across` is 1. */
static json_t *add_speed_up(const struct arguments_of_call *call)
{
    const char *across = text_at(call, 1), *rate = text_at(call, 2);
    json_t *rows = json_deep_copy(call->values[0]), *groups, *row, *other;
    const struct arguments_of_call keyed = {{NULL, call->nodes[3]}, {rows}, call->scope};
    size_t i, k;

    groups = treat_members(OF, &keyed);
    json_array_foreach(groups ? rows : NULL, i, row)
    {
        double one = NAN;
        json_array_foreach(
            rows, k, other) if (isnan(one) && number_of(json_object_get(other, across)) == 1 &&
                                json_equal(json_array_get(groups, i), json_array_get(groups, k)))
            one = number_of(json_object_get(other, rate));
        const double speed_up = number_of(json_object_get(row, rate)) / one;
        json_object_set_new(row, "speed-up", number(speed_up));
        json_object_set_new(row, "efficiency, %",
                            number(100 * speed_up / number_of(json_object_get(row, across))));
    }
    if (!groups)
        json_decref(rows);
    json_decref(groups);
    return groups ? rows : NULL;
}

/* Return points [seconds, value * scale] of a column of the series of `job` from the first epoch.
 */
static json_t *points_over_time(const struct evaluate_scope *scope, const char *column,
                                double scale)
{
    const json_t *series = json_object_get(find(scope, "job"), "series"),
                 *rows = json_object_get(series, "rows"),
                 *columns = json_object_get(series, "columns"), *part;
    json_t *points = json_array();
    size_t i, at = 0, first = 0;
    double start_s = INFINITY;

    for (; at < json_array_size(columns); at++) {
        const char *name = json_string_value(json_array_get(columns, at));
        if (name && strcmp(name, column) == 0)
            break;
    }
    if (at == json_array_size(columns))
        return points;
    json_array_foreach(json_object_get(series, "phases"), i, part)
    {
        const char *name = json_string_value(json_object_get(part, "phase"));
        if (name && strcmp(name, "epoch") == 0)
            start_s = fmin(start_s, number_of(json_object_get(part, "from_s")));
    }
    start_s = isfinite(start_s) ? start_s : 0;
    const size_t count = json_array_size(rows);
    while (first < count && !(number_of(json_array_get(json_array_get(rows, first), 0)) >= start_s))
        first++;
    const size_t step = (count - first + POINTS_MOST - 1) / POINTS_MOST;
    for (; first < count; first += step) {
        double sum = 0, known = 0;
        for (i = first; i < first + step && i < count; i++) {
            const double value = number_of(json_array_get(json_array_get(rows, i), at));
            sum += isfinite(value) ? value : 0;
            known += isfinite(value) ? 1 : 0;
        }
        if (known > 0)
            json_array_append_new(
                points, json_pack("[o, o]",
                                  number(number_of(json_array_get(json_array_get(rows, first), 0)) -
                                         start_s),
                                  number(sum / known * scale)));
    }
    return points;
}

/* Sum of the values of points; 0 without any. */
static double sum_of_points(const json_t *points)
{
    const json_t *point;
    double sum = 0;
    size_t i;

    json_array_foreach(points, i, point) sum += number_of(json_array_get(point, 1));
    return sum;
}

static const struct function {
    const char *name;
    size_t arguments,
        values; /* values: of the first ones; the others are evaluated for each member */
} functions[] = {
    {"number", 1, 1},    {"count", 1, 1},
    {"sum", 1, 1},       {"mean", 1, 1},
    {"min", 1, 1},       {"max", 1, 1},
    {"deviation", 1, 1}, {"abs", 1, 1},
    {"power", 2, 2},     {"default", 2, 2},
    {"percent", 1, 1},   {"list", 1, 1},
    {"against", 5, 5},   {"split", 1, 1},
    {"contains", 2, 2},  {"row", 1, 1},
    {"best", 1, 1},      {"worst", 1, 1},
    {"where", 2, 1},     {"of", 2, 1},
    {"sort", 2, 1},      {"group", 2, 1},
    {"merge", 1, 1},     {"speed_up", 4, 3},
    {"over_time", 2, 2}, {"storage_over_time", 0, 0},
    {"smooth", 2, 2},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static json_t *call_function(const char *name, const struct arguments_of_call *call)
{
    static const char *const statistics[] = {"count", "sum", "mean", "min", "max", "deviation"};
    static const char *const treatments[] = {"where", "of", "sort", "group"};
    json_t *first = call->values[0], *result, *member;
    const double value = number_of(first);
    size_t i;

    for (i = 0; i < sizeof statistics / sizeof *statistics; i++)
        if (strcmp(name, statistics[i]) == 0)
            return number(statistic_of((enum statistic)i, first));
    for (i = 0; i < sizeof treatments / sizeof *treatments; i++)
        if (strcmp(name, treatments[i]) == 0)
            return treat_members((enum treatment)i, call);
    if (strcmp(name, "number") == 0)
        return number(json_is_string(first) ? strtod(json_string_value(first), NULL) : value);
    if (strcmp(name, "abs") == 0)
        return number(fabs(value));
    if (strcmp(name, "power") == 0)
        return number(pow(value, number_of(call->values[1])));
    if (strcmp(name, "default") == 0)
        return json_incref(json_is_null(first) ? call->values[1] : first);
    if (strcmp(name, "percent") == 0) {
        result = number(100 * value);
        char *shown = evaluate_shown(result);
        json_decref(result);
        result = shown ? take_text(file_format_path("%s%%", shown)) : NULL;
        free(shown);
        return result;
    }
    if (strcmp(name, "list") == 0) { /* "a, b and c"; without what is null */
        struct text_stream stream;
        char *text = NULL;
        size_t bytes, count = 0, written = 0;
        json_array_foreach(first, i, member) count += json_is_string(member);
        if (text_stream_open(&stream))
            return NULL;
        json_array_foreach(first, i, member)
        {
            if (!json_is_string(member))
                continue;
            written++;
            fprintf(stream.stream, "%s%s",
                    written == 1       ? ""
                    : written == count ? " and "
                                       : ", ",
                    json_string_value(member));
        }
        text_stream_take(&stream, &text, &bytes);
        return take_text(text);
    }
    if (strcmp(name, "against") == 0) { /* "41% more than": within 5% both are the same */
        const double ratio = value / number_of(call->values[1]);
        if (!isfinite(ratio))
            return missing();
        if (ratio >= 0.95 && ratio <= 1.05)
            return json_incref(call->values[3]);
        json_t *change = number(100 * fabs(ratio - 1));
        char *shown = evaluate_shown(change);
        json_decref(change);
        result =
            shown ? take_text(file_format_path("%s%% %s", shown, text_at(call, ratio > 1 ? 2 : 4)))
                  : NULL;
        free(shown);
        return result;
    }
    if (strcmp(name, "contains") == 0)
        return json_boolean(strstr(text_at(call, 0), text_at(call, 1)));
    if (strcmp(name, "split") == 0) {
        result = json_array();
        for (const char *at = text_at(call, 0); *(at += strspn(at, " "));) {
            json_array_append_new(result, json_stringn(at, strcspn(at, " ")));
            at += strcspn(at, " ");
        }
        return result;
    }
    if (strcmp(name, "row") == 0) {
        json_array_foreach(find(call->scope, "rows"), i,
                           member) if (json_equal(json_object_get(member, "run"),
                                                  first)) return json_incref(member);
        fail(ENODATA, "no run %s", text_at(call, 0));
        return NULL;
    }
    if (strcmp(name, "best") == 0 || strcmp(name, "worst") == 0) {
        const double sign = *name == 'b' ? 1 : -1; /* the highest in a column, or the lowest */
        json_t *best = NULL;
        double most = -INFINITY;
        size_t count = 0;
        json_array_foreach(find(call->scope, "rows"), i, member)
        {
            const double its = sign * number_of(json_object_get(member, text_at(call, 0)));
            count += isfinite(its) ? 1 : 0;
            if (its > most || (its >= most && sign > 0)) {
                most = its;
                best = member;
            }
        }
        if (count >= 2)
            return json_incref(best);
        fail(ENODATA, "one run is not enough");
        return NULL;
    }
    if (strcmp(name, "merge") == 0) { /* rows into one; what is null does not count */
        const char *key;
        json_t *part;
        result = json_object();
        json_array_foreach(first, i, member)
            json_object_foreach(member, key, part) if (!json_is_null(part))
                json_object_set(result, key, part);
        return result;
    }
    if (strcmp(name, "speed_up") == 0)
        return add_speed_up(call);
    if (strcmp(name, "over_time") == 0)
        return points_over_time(call->scope, text_at(call, 0), number_of(call->values[1]));
    if (strcmp(name, "storage_over_time") == 0) { /* from local disks, or over a fabric */
        json_t *local = points_over_time(call->scope, "from_local_bytes_per_s", 1e-6);
        json_t *fabric = points_over_time(call->scope, "from_fabric_bytes_per_s", 1e-6);
        const bool is_fabric = sum_of_points(fabric) > sum_of_points(local);
        json_decref(is_fabric ? local : fabric);
        return is_fabric ? fabric : local;
    }
    assert(strcmp(name, "smooth") == 0); /* means of neighbouring points, at most half of them */
    const size_t count = json_array_size(first);
    const double half = fmax(1, (double)((count + 1) / 2));
    const size_t width = (size_t)fmin(fmax(1, number_of(call->values[1])), half);
    result = json_array();
    for (i = 0; i + width <= count; i++) {
        double at = 0, sum = 0;
        for (size_t k = i; k < i + width; k++) {
            at += number_of(json_array_get(json_array_get(first, k), 0));
            sum += number_of(json_array_get(json_array_get(first, k), 1));
        }
        json_array_append_new(
            result, json_pack("[o, o]", number(at / (double)width), number(sum / (double)width)));
    }
    return result;
}

void evaluate_release(struct evaluate_node *node)
{
    while (node) {
        struct evaluate_node *before = node->made;
        free(node->text);
        free(node);
        node = before;
    }
}

struct evaluate_node *evaluate_parse(const char *text)
{
    struct parser parser = {.at = text};
    struct evaluate_node *first = parse_any(&parser);

    skip_blanks(&parser);
    if (*parser.at)
        refuse(&parser, "the end");
    for (const struct evaluate_node *node = parser.last_made; node; node = node->made) {
        size_t i = 0, count = 0;
        if (node->kind != CALL || parser.has_failed)
            continue;
        for (const struct evaluate_node *child = node->first; child; child = child->next)
            count++;
        while (i < FUNCTIONS && strcmp(functions[i].name, node->text) != 0)
            i++;
        if (i < FUNCTIONS && count == functions[i].arguments)
            continue;
        if (i < FUNCTIONS)
            fail(EINVAL, "%s() takes %zu values", node->text, functions[i].arguments);
        else
            fail(EINVAL, "unknown function '%s'", node->text);
        parser.has_failed = true;
    }
    make_node(&parser, ROOT, NULL, 0)->first = first;
    if (!parser.has_failed)
        return parser.last_made;
    evaluate_release(parser.last_made);
    return NULL;
}

/* ---- evaluating ---- */

static json_t *operate(const char *operation, const json_t *one, const json_t *other)
{
    const double a = number_of(one), b = number_of(other);
    const bool are_texts = json_is_string(one) && json_is_string(other);
    const bool can_compare = are_texts || (json_is_number(one) && json_is_number(other));
    const int order = can_compare ? compare(one, other) : 0;

    if (strcmp(operation, "==") == 0 || strcmp(operation, "!=") == 0)
        return json_boolean((can_compare ? order == 0 : json_equal(one, other)) ==
                            (*operation == '='));
    if (*operation == '<' || *operation == '>')
        return json_boolean(can_compare && ((*operation == '<' ? order < 0 : order > 0) ||
                                            (operation[1] && order == 0)));
    return number(*operation == '+'   ? a + b
                  : *operation == '-' ? a - b
                  : *operation == '*' ? a * b
                                      : a / b);
}

static json_t *evaluate_member(const struct evaluate_node *node, const json_t *of,
                               const json_t *key)
{
    const size_t count = json_array_size(of);
    double at = number_of(key);

    if (json_is_string(key))
        return json_object_get(of, json_string_value(key))
                   ? json_incref(json_object_get(of, json_string_value(key)))
                   : json_null();
    at = at < 0 ? at + (double)count : at;
    const size_t index = at >= 0 && at < (double)count ? (size_t)at : count;
    if (node->kind == MEMBER)
        return index < count ? json_incref(json_array_get(of, index)) : json_null();
    json_t *tail = json_array();
    for (size_t i = index; i < count; i++)
        json_array_append(tail, json_array_get(of, i));
    return tail;
}

json_t *evaluate(const struct evaluate_node *node, const struct evaluate_scope *scope)
{
    const struct evaluate_node *child = node->first;
    json_t *first = NULL, *second = NULL, *result = NULL;

    switch (node->kind) {
    case NUMBER:
        return number(node->number);
    case LITERAL:
        return json_text(node->text);
    case TEXT: {
        struct text_stream stream;
        char *text = NULL;
        size_t bytes;
        int code = text_stream_open(&stream);
        for (const struct evaluate_node *part = node->first; part && code == 0; part = part->next) {
            json_t *value = part->kind == LITERAL ? NULL : evaluate(part, scope);
            char *shown = value ? evaluate_shown(value) : NULL;
            if (part->kind == LITERAL || shown)
                fputs(shown ? shown : part->text, stream.stream);
            else
                code = -ENODATA;
            free(shown);
            json_decref(value);
        }
        if (code == 0)
            code = text_stream_take(&stream, &text, &bytes);
        else
            text_stream_close(&stream);
        return take_text(text);
    }
    case NAME:
        first = strcmp(node->text, "null") == 0 ? NULL : find(scope, node->text);
        return first ? json_incref(first) : json_null();
    case ROOT:
        return evaluate(child, scope);
    case CALL: {
        struct arguments_of_call call = {.scope = scope};
        size_t function = 0, count = 0;
        bool is_whole = true;
        while (strcmp(functions[function].name, node->text) != 0)
            function++;
        for (; child; child = child->next, count++) {
            call.nodes[count] = child;
            if (count < functions[function].values && is_whole)
                is_whole = (call.values[count] = evaluate(child, scope));
        }
        if (is_whole)
            result = call_function(node->text, &call);
        for (size_t i = 0; i < count; i++)
            json_decref(call.values[i]);
        return result;
    }
    case LIST:
        result = json_array();
        for (; child && result; child = child->next)
            if (!(first = evaluate(child, scope)) || json_array_append_new(result, first)) {
                json_decref(result);
                result = NULL;
            }
        return result;
    default:
        break;
    }
    first = evaluate(child, scope);
    if (first && node->kind == LET) {
        const struct evaluate_scope inner = {scope, node->text, first};
        result = evaluate(child->next, &inner);
    } else if (first && node->kind == IF) {
        result = evaluate(json_is_true(first) ? child->next : child->next->next, scope);
    } else if (first && node->kind == BINARY && (*node->text == 'o' || *node->text == 'a')) {
        result = json_is_true(first) == (*node->text == 'o') ? json_boolean(json_is_true(first))
                                                             : evaluate(child->next, scope);
    } else if (first && (second = evaluate(child->next, scope))) {
        result = node->kind == BINARY ? operate(node->text, first, second)
                                      : evaluate_member(node, first, second);
    }
    json_decref(first);
    json_decref(second);
    return result;
}
