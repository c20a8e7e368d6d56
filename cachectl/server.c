/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/server.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cachectl/outside.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void
set_verdict(struct server_result *result, enum server_state state, const char *format, ...)
{
    va_list arguments;

    result->state = state;
    va_start(arguments, format);
    vsnprintf(result->reason, sizeof result->reason, format, arguments);
    va_end(arguments);
}

/* text: CHILD_TEXT_BYTES for its output, or NULL. Returns 0 if it exited with status 0. */
static int call_server(const struct server_request *request, const char *command, const char *doing,
                       const char *name, struct server_call *call, char *text)
{
    const uint64_t start_ns = clock_now_ns();
    struct cache_step step = {request->observer, doing, start_ns};
    const struct child_task task = {.text = text,
                                    .timeout_ns = request->timeout_ns,
                                    .stop = cache_report_step,
                                    .context = &step};
    struct child_result child;
    int code = outside_run(command, &task, &child);

    *call = (struct server_call){
        .made = true, .status = code ? code : child.status, .took_ns = clock_now_ns() - start_ns};
    if (code)
        return code;
    memcpy(call->output, child.output, sizeof child.output);
    return child.status ? fail(EREMOTEIO, "the server %s command ended with status %d: %.180s",
                               name, child.status, child.output)
                        : 0;
}

static int ask_server(const struct server_request *request, struct server_result *result,
                      struct server_look *look)
{
    char text[CHILD_TEXT_BYTES];
    int code = call_server(request, request->check_command, "asking the server", "check",
                           &result->check, text);

    return code ? code : server_parse(text, look);
}

void server_make_cold(const struct server_request *request, struct server_result *result)
{
    const bool drops = request->drop_command, checks = request->check_command;
    const char *dropped = drops ? ", though its caches were dropped" : "";
    const char *dropping = "dropping the server's cache";
    const struct server_look *now = &result->start;
    int code = 0;

    *result = (struct server_result){.state = SERVER_NONE};
    if (!request->where && !drops && !checks)
        return;
    set_verdict(result, SERVER_UNVERIFIED,
                "%s%sserver cache contents unknown%s; verify them with --server-check-cmd 'ssh "
                "SERVER cachectl status --json PATH'",
                request->where ? request->where : "", request->where ? ": " : "",
                drops ? ", though its caches were to be dropped" : "");
    if (drops && checks) {
        code = ask_server(request, result, &result->before);
        result->looked_before = code == 0;
    }
    if (drops && code == 0)
        code = call_server(request, request->drop_command, dropping, "drop", &result->drop, NULL);
    if (checks && code == 0) {
        code = ask_server(request, result, &result->start);
        result->looked = code == 0;
    }
    if (result->looked) {
        const uint64_t read = request->read_bytes ? request->read_bytes : request->set_bytes;
        char some[32], set[32];
        bytes_text(request->set_bytes, set, sizeof set);
        if (now->resident_known && now->total_bytes < request->set_bytes)
            set_verdict(result, SERVER_UNVERIFIED,
                        "the server check covers %s, the data set has %s: check the set's files",
                        bytes_text(now->total_bytes, some, sizeof some), set);
        else if (!now->resident_known)
            set_verdict(result, SERVER_UNVERIFIED,
                        "the server does not report its resident bytes%s%s",
                        now->reason[0] ? ": " : "", now->reason);
        else if (100.0 * (double)now->resident_bytes > RESIDENCY_COLD_PERCENT * (double)read)
            set_verdict(result, SERVER_WARM, "%s of %s is in the server's memory before the run%s",
                        bytes_text(now->resident_bytes, some, sizeof some), set, dropped);
        else
            set_verdict(result, SERVER_COLD, "%s", "");
        if (drops) /* the check opened the files there */
            code =
                call_server(request, request->drop_command, dropping, "drop", &result->drop, NULL);
    }
    if (code)
        set_verdict(result, SERVER_UNVERIFIED, "%s", fail_reason());
}

void server_look_after(const struct server_request *request, struct server_result *result)
{
    struct server_look now;

    if (!result->looked || !result->start.disk_known)
        return;
    int code = ask_server(request, result, &now);
    if (code == 0 && (!now.disk_known || now.disk_read_bytes < result->start.disk_read_bytes))
        code = fail(EPROTO, "the server check: disk_read_bytes decreased or is no longer reported");
    if (code) {
        set_verdict(result, SERVER_UNVERIFIED, "after the run: %s", fail_reason());
        return;
    }
    result->disk_known = true;
    result->disk_read_bytes = now.disk_read_bytes - result->start.disk_read_bytes;
}

static const char wanted[] = "expected the output of 'cachectl status --json'";

/* Add a byte count to *sum; a null or missing value makes the sum unknown. */
static int add_bytes(const json_t *row, const char *key, bool *known, uint64_t *sum)
{
    const json_t *value = json_object_get(row, key);

    if (!value || json_is_null(value)) {
        *known = false;
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return fail(EPROTO, "the server check: %s is not a number of bytes; %s", key, wanted);
    if (__builtin_add_overflow(*sum, (uint64_t)json_integer_value(value), sum) || *sum > INT64_MAX)
        return fail(EPROTO, "the server check: %s: the sum is out of range", key);
    return 0;
}

int server_parse(const char *text, struct server_look *look)
{
    static const char blanks[] = " \t\r\n";
    size_t rows = 0;
    int code = 0;

    *look = (struct server_look){.resident_known = true, .disk_known = true};
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        json_error_t error;
        json_t *document =
            json_loads(text, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
        if (!document)
            return fail(EPROTO, "the server check: not JSON: %.80s; %s", error.text, wanted);
        const size_t count = json_is_array(document) ? json_array_size(document) : 1;
        for (size_t i = 0; code == 0 && i < count; i++) {
            const json_t *row = json_is_array(document) ? json_array_get(document, i) : document;
            const char *reason = json_string_value(json_object_get(row, "reason"));
            bool total_known = true;
            if (!json_is_object(row)) {
                code = fail(EPROTO, "the server check: a row is not an object; %s", wanted);
                break;
            }
            code = add_bytes(row, "resident_bytes", &look->resident_known, &look->resident_bytes);
            if (code == 0)
                code = add_bytes(row, "total_bytes", &total_known, &look->total_bytes);
            if (code == 0)
                code = add_bytes(row, "disk_read_bytes", &look->disk_known, &look->disk_read_bytes);
            look->resident_known &= total_known;
            if (reason && !look->reason[0])
                snprintf(look->reason, sizeof look->reason, "%s", reason);
        }
        json_decref(document);
        if (code)
            return code;
        rows += count;
        text += error.position;
    }
    if (rows == 0)
        return fail(EPROTO, "the server check printed nothing; %s", wanted);
    if (look->resident_known && look->resident_bytes > look->total_bytes)
        return fail(EPROTO, "the server check: resident_bytes exceeds total_bytes");
    return 0;
}
