/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/nfs_link.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t RETRY_NS = 200000000, FIRST_NS = 5000000000, SILENT_NS = 1000000000;
static const int TICK_MS = 100;
static const char scheme[] = "nfs://";

struct known {
    struct nfs_place place;
    struct nfs_link *idle;
    bool is_silent; /* the last wait for it timed out */
    struct known *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and its links */
static struct known *places;

/* ---- calls ---- */

bool nfs_link_is_lost(int status)
{
    return status == -EFAULT || status == -EINTR || status == -ETIMEDOUT || status == -EAGAIN;
}

void nfs_call_answer(int status, struct nfs_context *context, void *body, void *private)
{
    struct nfs_call *call = private;

    call->status = status;
    call->body = body;
    if (status < 0)
        snprintf(call->text, sizeof call->text, "%s",
                 body ? (const char *)body : nfs_get_error(context));
    else if (call->into && call->bytes)
        memcpy(call->into, body, call->bytes);
    else if (call->into && status > 0)
        libnfs_take(call->into, body, (size_t)status);
    call->done = true;
}

static void disconnect(struct nfs_link *link)
{
    if (link->context)
        nfs_destroy_context(link->context); /* may call callbacks of pending calls */
    link->context = NULL;
}

static void note_silence(const struct nfs_place *place, bool is_silent)
{
    pthread_mutex_lock(&lock);
    ((struct known *)(uintptr_t)place)->is_silent = is_silent; /* its first member */
    pthread_mutex_unlock(&lock);
}

int nfs_link_wait(struct nfs_link *link, struct nfs_call *call, uint64_t deadline_ns)
{
    while (!call->done) {
        struct pollfd poll_fd = {.fd = nfs_get_fd(link->context),
                                 .events = (short)nfs_which_events(link->context)};
        int ready = poll(&poll_fd, 1, TICK_MS);
        if (nfs_service(link->context, ready > 0 ? poll_fd.revents : 0) < 0 && !call->done) {
            snprintf(call->text, sizeof call->text, "%s", nfs_get_error(link->context));
            disconnect(link);
            return -ECONNRESET;
        }
        if (!call->done && clock_now_ns() > deadline_ns) {
            disconnect(link);
            note_silence(link->place, true);
            return -ETIMEDOUT;
        }
    }
    return nfs_link_is_lost(call->status) ? -ECONNRESET : call->status;
}

/* ---- mounting ---- */

struct nfs_context *nfs_new_context(const struct nfs_place *place)
{
    struct nfs_context *context = nfs_init_context();
    char host[65] = "", client[128];

    if (!context)
        return NULL;
    nfs_set_autoreconnect(context, 0); /* who uses it reconnects, so that time-outs apply */
    nfs_set_version(context, place->version);
    /* For NFS 4 each connection is a client: one with the same name would close the other's files.
     */
    gethostname(host, sizeof host - 1);
    snprintf(client, sizeof client, "iobench-%s-%d-%p", host, (int)getpid(), (void *)context);
    nfs4_set_client_name(context, client);
    return context;
}

/* Returns 0, a negative errno with libnfs's message in text, or what nfs_link_wait() returns. */
static int mount_place(struct nfs_link *link, uint64_t deadline_ns, char *text, size_t bytes)
{
    const struct nfs_place *place = link->place;
    struct nfs_call call = {0};

    link->context = nfs_new_context(place);
    if (!link->context)
        return fail(ENOMEM, "out of memory for a connection");
    nfs_set_dircache(link->context, 0);
    int code = nfs_mount_async(link->context, place->server, place->folder, nfs_call_answer, &call);
    if (code) {
        nfs_call_answer(-EHOSTUNREACH, link->context, NULL, &call);
        code = -EHOSTUNREACH;
    } else {
        code = nfs_link_wait(link, &call, deadline_ns);
    }
    snprintf(text, bytes, "%s",
             code == -ETIMEDOUT ? "no answer"
             : call.text[0]     ? call.text
                                : fail_errno_text(code));
    return code;
}

/* Return whether this is the server's final answer about the folder: a retry would not change
 * it. */
static bool is_refusal(int code)
{
    return code == -ENOENT || code == -ENOTDIR || code == -EACCES || code == -EPERM ||
           code == -EINVAL;
}

int nfs_link_take(const struct nfs_place *place, uint64_t deadline_ns, struct nfs_link **taken)
{
    struct known *known = (struct known *)(uintptr_t)place; /* its first member */
    char text[160];

    pthread_mutex_lock(&lock);
    struct nfs_link *link = known->idle;
    if (link)
        known->idle = link->next;
    bool is_silent = known->is_silent;
    pthread_mutex_unlock(&lock);
    /* Cleaning up on an unresponsive server must not wait for the full time-out again. */
    if (is_silent && deadline_ns > clock_now_ns() + SILENT_NS)
        deadline_ns = clock_now_ns() + SILENT_NS;
    *taken = link;
    if (link)
        return 0;
    link = memory_zeroed(sizeof *link);
    if (!link)
        return -ENOMEM;
    link->place = place;
    for (;;) {
        int code = mount_place(link, deadline_ns, text, sizeof text);
        *taken = link;
        if (code == 0)
            return 0;
        disconnect(link);
        if (is_refusal(code) || code == -ENOMEM || clock_now_ns() + RETRY_NS > deadline_ns) {
            *taken = NULL;
            note_silence(place, !is_refusal(code));
            free(link);
            return fail(is_refusal(code) ? code : EHOSTUNREACH, "nfs://%s%s cannot be reached: %s",
                        place->server, place->folder, text);
        }
        clock_sleep_ns(RETRY_NS);
    }
}

void nfs_link_give(struct nfs_link *link)
{
    struct known *known = (struct known *)(uintptr_t)link->place;

    pthread_mutex_lock(&lock);
    assert(link->context);
    known->is_silent = false; /* it worked when it was returned */
    link->next = known->idle;
    known->idle = link;
    pthread_mutex_unlock(&lock);
}

void nfs_link_drop(struct nfs_link *link)
{
    if (link)
        disconnect(link);
    free(link);
}

/* ---- places ---- */

static int parse_url(const char *url, struct nfs_place *place)
{
    const char *server = url + strlen(scheme);

    if (strncmp(url, scheme, strlen(scheme)) != 0 || strcspn(server, "/") == 0 ||
        strcspn(server, "/") >= sizeof place->server)
        return fail(EINVAL, "%s: not an NFS URL; write nfs://server/export/path", url);
    size_t server_bytes = strcspn(server, "/");
    const char *path = server[server_bytes] ? server + server_bytes : "/";
    if (strchr(url, '?'))
        return fail(EINVAL, "%s: URL options (after '?') are not supported", url);
    if (strlen(path) >= sizeof place->folder)
        return fail(ENAMETOOLONG, "%s: path too long", url);
    memcpy(place->server, server, server_bytes);
    place->server[server_bytes] = '\0';
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    memcpy(place->folder, path, length);
    place->folder[length] = '\0';
    return 0;
}

/* Return whether path is folder or inside it. */
static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strcmp(folder, "/") == 0 ||
           (strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

bool nfs_place_holds(const struct nfs_place *place, const char *url)
{
    struct nfs_place wanted;

    return parse_url(url, &wanted) == 0 && strcmp(place->server, wanted.server) == 0 &&
           lies_in(wanted.folder, place->folder);
}

const char *nfs_place_below(const struct nfs_place *place, const char *url)
{
    const char *below = url + strlen(scheme) + strlen(place->server);

    if (strcmp(place->folder, "/") != 0)
        below += strlen(place->folder);
    return *below ? below : "/";
}

/* Try to mount wanted's folder, then the folders above it. */
static int climb(const struct nfs_place *wanted, int version, uint64_t deadline_ns,
                 const struct nfs_place **found, char *text, size_t bytes)
{
    struct known *known = memory_zeroed(sizeof *known);
    struct nfs_link *link = memory_zeroed(sizeof *link);
    char other_text[160];
    int first = 0, code;

    if (!known || !link) {
        free(known);
        free(link);
        return -ENOMEM;
    }
    known->place = *wanted;
    known->place.version = version;
    link->place = &known->place;
    for (;;) {
        code = mount_place(link, deadline_ns, first ? other_text : text,
                           first ? sizeof other_text : bytes);
        if (code == 0) { /* some servers also mount a file, but nothing below it can be named */
            struct nfs_stat_64 status;
            struct nfs_call call = {.into = &status, .bytes = sizeof status};
            code = nfs_stat64_async(link->context, "/", nfs_call_answer, &call)
                       ? -ECONNRESET
                       : nfs_link_wait(link, &call, deadline_ns);
            if (code >= 0)
                code = S_ISDIR(status.nfs_mode) ? 0 : -ENOTDIR;
            if (code && !first)
                snprintf(text, bytes, "%s", fail_errno_text(code));
        }
        first = first ? first : code;
        char *slash = strrchr(known->place.folder, '/');
        if (!is_refusal(code) || slash[1] == '\0')
            break;
        disconnect(link);
        slash[slash == known->place.folder] = '\0';
    }
    if (code) {
        nfs_link_drop(link);
        free(known);
        return first;
    }
    pthread_mutex_lock(&lock);
    known->idle = link;
    known->next = places;
    places = known;
    pthread_mutex_unlock(&lock);
    *found = &known->place;
    return 0;
}

int nfs_place_find(const char *url, int version, const struct nfs_place **place)
{
    struct nfs_place wanted = {.version = version};
    uint64_t patience_ns =
        store_timeout() && store_timeout() < FIRST_NS ? store_timeout() : FIRST_NS;
    char texts[2][160] = {"", ""};
    int codes[2] = {0, 0}, code = parse_url(url, &wanted);

    if (code)
        return code;
    /* The topmost known place that contains wanted: folders below it may come and go. */
    const struct nfs_place *best = NULL;
    pthread_mutex_lock(&lock);
    for (const struct known *known = places; known; known = known->next) {
        const struct nfs_place *other = &known->place;
        if (strcmp(other->server, wanted.server) == 0 &&
            (!wanted.version || wanted.version == other->version) &&
            lies_in(wanted.folder, other->folder) &&
            (!best || strlen(other->folder) < strlen(best->folder)))
            best = other;
    }
    pthread_mutex_unlock(&lock);
    *place = best;
    if (best)
        return 0;
    for (int i = 0; i < 2; i++) {
        if (version && version != 3 + i)
            continue;
        codes[i] =
            climb(&wanted, 3 + i, clock_now_ns() + patience_ns, place, texts[i], sizeof texts[i]);
        if (codes[i] == 0 || codes[i] == -ENOMEM)
            return codes[i];
    }
    code = is_refusal(codes[1]) || !codes[0] ? codes[1] : codes[0];
    return fail(is_refusal(code) ? code : EHOSTUNREACH, "%s cannot be reached: %s%s%s%s%s", url,
                codes[0] ? "NFS 3: " : "", texts[0], codes[0] && codes[1] ? "; " : "",
                codes[1] ? "NFS 4: " : "", texts[1]);
}
