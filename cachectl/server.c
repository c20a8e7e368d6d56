/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/server.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cachectl/outside.h"
#include "cachectl/residency.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void settle(struct server_result *result, enum server_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void settle(struct server_result *result, enum server_state state, const char *format, ...)
{
    va_list arguments;

    result->state = state;
    va_start(arguments, format);
    vsnprintf(result->reason, sizeof result->reason, format, arguments);
    va_end(arguments);
}

/* text: CHILD_TEXT_BYTES for its output, or NULL. Returns 0 if it exited with status 0. */
static int run(const struct server_request *request, const char *command, const char *doing,
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

static int drop(const struct server_request *request, struct server_result *result)
{
    return run(request, request->drop_command, "dropping the server's cache", "drop", &result->drop,
               NULL);
}

static int look(const struct server_request *request, struct server_result *result,
                struct server_look *look)
{
    char text[CHILD_TEXT_BYTES];
    int code =
        run(request, request->check_command, "asking the server", "check", &result->check, text);

    return code ? code : server_parse(text, look);
}

/* ---- the verdict ---- */

static void judge(const struct server_request *request, struct server_result *result)
{
    const struct server_look *now = &result->start;
    const uint64_t read = request->read_bytes ? request->read_bytes : request->set_bytes;
    char resident[32], set[32];

    bytes_text(request->set_bytes, set, sizeof set);
    if (now->resident_known && now->total_bytes < request->set_bytes)
        settle(result, SERVER_UNVERIFIED,
               "the server check covers %s, the data set has %s: check the set's files",
               bytes_text(now->total_bytes, resident, sizeof resident), set);
    else if (!now->resident_known)
        settle(result, SERVER_UNVERIFIED, "the server does not report its resident bytes%s%s",
               now->reason[0] ? ": " : "", now->reason);
    else if (100.0 * (double)now->resident_bytes > RESIDENCY_COLD_PERCENT * (double)read)
        settle(result, SERVER_WARM, "%s of %s is in the server's memory before the run%s",
               bytes_text(now->resident_bytes, resident, sizeof resident), set,
               request->drop_command ? ", though its caches were dropped" : "");
    else
        settle(result, SERVER_COLD, "%s", "");
}

/* Advice on how to verify. */
static void settle_unasked(const struct server_request *request, struct server_result *result)
{
    settle(result, SERVER_UNVERIFIED,
           "%s%sserver cache contents unknown%s; verify them with --server-check-cmd 'ssh "
           "SERVER cachectl status --json PATH'",
           request->where ? request->where : "", request->where ? ": " : "",
           request->drop_command ? ", though its caches were to be dropped" : "");
}

void server_make_cold(const struct server_request *request, struct server_result *result)
{
    const bool drops = request->drop_command, checks = request->check_command;
    int code = 0;

    *result = (struct server_result){.state = SERVER_NONE};
    if (!request->where && !drops && !checks)
        return;
    settle_unasked(request, result);
    if (drops && checks) {
        code = look(request, result, &result->before);
        result->looked_before = code == 0;
    }
    if (drops && code == 0)
        code = drop(request, result);
    if (checks && code == 0) {
        code = look(request, result, &result->start);
        result->looked = code == 0;
    }
    if (result->looked)
        judge(request, result);
    if (drops && result->looked) /* the check opened the files there */
        code = drop(request, result);
    if (code)
        settle(result, SERVER_UNVERIFIED, "%s", fail_reason());
}

void server_look_after(const struct server_request *request, struct server_result *result)
{
    struct server_look now;

    if (!result->looked || !result->start.disk_known)
        return;
    int code = look(request, result, &now);
    if (code == 0 && (!now.disk_known || now.disk_read_bytes < result->start.disk_read_bytes))
        code = fail(EPROTO, "the server check: disk_read_bytes decreased or is no longer reported");
    if (code) {
        settle(result, SERVER_UNVERIFIED, "after the run: %s", fail_reason());
        return;
    }
    result->disk_known = true;
    result->disk_read_bytes = now.disk_read_bytes - result->start.disk_read_bytes;
}
