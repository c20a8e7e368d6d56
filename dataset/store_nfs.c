/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of an NFS server, through libnfs. A call whose connection is lost is retried on a new
 * connection until the time-out, if it may safely be repeated. Writing a file may not: a restarted
 * server may have lost data that had not reached its disks, so the writer must start over.
 */
#include "dataset/store_nfs.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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

/* A connection, which waits for one call at a time and belongs to one thread from take to give.
 * libnfs itself waits for a dead server forever; here every wait times out. */
struct nfs_link {
    struct nfs_context *context;
    const struct nfs_place *place;
    struct nfs_link *next;
};

struct nfs_call {
    int status; /* >= 0, or a negative errno */
    bool done;
    void *body;     /* a reply that outlives the callback: an open file, a folder */
    void *into;     /* any other reply is copied here */
    size_t bytes;   /* its size; 0: status bytes, of a read */
    char text[160]; /* libnfs's reason */
};

struct known {
    struct nfs_place place;
    struct nfs_link *idle;
    bool is_silent; /* the last wait for it timed out */
    struct known *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and its links */
static struct known *places;

/* ---- links ---- */

bool nfs_link_is_lost(int status)
{
    return status == -EFAULT || status == -EINTR || status == -ETIMEDOUT || status == -EAGAIN;
}

/* Completion callback for libnfs. */
static void nfs_call_answer(int status, struct nfs_context *context, void *body, void *private)
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

/* Wait for a started call. Returns its status, or -ETIMEDOUT or -ECONNRESET (connection lost)
 * without a reason: then the link is dead; drop it. */
static int nfs_link_wait(struct nfs_link *link, struct nfs_call *call, uint64_t deadline_ns)
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

/* Acquire a link to the place, waiting for an unreachable server until deadline_ns. Returns 0 or a
 * negative errno with a reason. */
static int nfs_link_take(const struct nfs_place *place, uint64_t deadline_ns,
                         struct nfs_link **taken)
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

static void nfs_link_give(struct nfs_link *link)
{
    struct known *known = (struct known *)(uintptr_t)link->place;

    pthread_mutex_lock(&lock);
    assert(link->context);
    known->is_silent = false; /* it worked when it was returned */
    link->next = known->idle;
    known->idle = link;
    pthread_mutex_unlock(&lock);
}

/* It is broken; NULL is fine. */
static void nfs_link_drop(struct nfs_link *link)
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

/* ---- the store ---- */

/* Large enough to keep the network busy: libnfs sends the parts of one call in parallel. */
enum { BLOCK_BYTES = 4 << 20 };

struct nfs_file {
    struct store_file file;
    struct nfs_link *link; /* exclusive while the file is open; NULL if lost */
    struct nfsfh *handle;
    char *draft_path; /* of a draft; file.path is its final name */
};

static struct nfs_file *nfs_of(struct store_file *file)
{
    return (struct nfs_file *)(void *)file;
}

static uint64_t deadline(void)
{
    return store_timeout() ? clock_now_ns() + store_timeout() : UINT64_MAX;
}

static int nfs_fail(int code, const char *what, const char *url)
{
    return code == -ETIMEDOUT ? fail(ETIMEDOUT, "%s: no answer from the server for %.1f s", url,
                                     (double)store_timeout() / 1e9)
                              : fail(code, "%s: %s%s", url, what, fail_errno_text(code));
}

static struct store_status status_of(const struct nfs_stat_64 *found)
{
    return (struct store_status){
        .kind = store_kind_of(found->nfs_mode),
        .bytes = found->nfs_size,
        .mtime_ns = store_time_ns(found->nfs_mtime, found->nfs_mtime_nsec),
        .ctime_ns = store_time_ns(found->nfs_ctime, found->nfs_ctime_nsec),
        .device = found->nfs_dev,
        .inode = found->nfs_ino,
        .owner = (uint32_t)found->nfs_uid,
        .mode = (uint32_t)found->nfs_mode,
    };
}

/* ---- calls on paths ---- */

/* Started by start, by start_to, or as an opening with open_flags. */
struct nfs_action {
    int (*start)(struct nfs_context *context, const char *path, nfs_cb done, void *private);
    int (*start_to)(struct nfs_context *context, const char *path, const char *to, nfs_cb done,
                    void *private);
    int open_flags;
    const char *what;  /* of a reason */
    int done_by_first; /* the error of a repeated call if the first one did it; 0: none */
};

static int make_any_folder(struct nfs_context *context, const char *path, nfs_cb done,
                           void *private)
{
    return nfs_mkdir2_async(context, path, 0777, done, private);
}

static const struct nfs_action look_at = {.start = nfs_stat64_async, .what = ""};
static const struct nfs_action look_at_name = {.start = nfs_lstat64_async, .what = ""};
static const struct nfs_action look_and_remove = {.start = nfs_lstat64_async,
                                                  .what = "cannot remove: "};
static const struct nfs_action list_folder = {.start = nfs_opendir_async,
                                              .what = "cannot open the folder: "};
static const struct nfs_action rename_name = {
    .start_to = nfs_rename_async, .what = "cannot rename: ", .done_by_first = -ENOENT};
static const struct nfs_action unlink_name = {
    .start = nfs_unlink_async, .what = "cannot remove: ", .done_by_first = -ENOENT};
static const struct nfs_action remove_folder = {
    .start = nfs_rmdir_async, .what = "cannot remove: ", .done_by_first = -ENOENT};
static const struct nfs_action make_folder = {
    .start = make_any_folder, .what = "cannot make the folder: ", .done_by_first = -EEXIST};
static const struct nfs_action get_free_space = {.start = nfs_statvfs64_async,
                                                 .what = "cannot get the free space: "};
static const struct nfs_action openings[] = {
    [STORE_READ] = {.open_flags = O_RDONLY, .what = "cannot open: "},
    [STORE_CREATE] = {.open_flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                      .what = "cannot make the file: "},
    [STORE_EXTEND] = {.open_flags = O_WRONLY | O_CREAT | O_NOFOLLOW,
                      .what = "cannot make the file: "}};

/* When *link is set the caller owns the link, since the opened file belongs to it. -ETIMEDOUT and
 * the server's errors come without a reason; *reasoned says whether there is one. */
static int perform(const struct nfs_action *action, const char *url, const char *to,
                   uint64_t deadline_ns, struct nfs_call *call, struct nfs_link **link,
                   bool *reasoned)
{
    const struct nfs_call fresh = *call;
    const struct nfs_place *place;
    bool again = false;
    int code = nfs_place_find(url, 0, &place);

    *reasoned = true;
    while (code == 0) {
        *reasoned = true;
        code = nfs_link_take(place, deadline_ns, link);
        if (code)
            return code;
        *call = fresh;
        code = -ECONNRESET;
        struct nfs_context *context = (*link)->context;
        const char *path = nfs_place_below(place, url);
        const int refused =
            action->start ? action->start(context, path, nfs_call_answer, call)
            : action->start_to
                ? action->start_to(context, path, nfs_place_below(place, to), nfs_call_answer, call)
                : nfs_open2_async(context, path, action->open_flags, 0666, nfs_call_answer, call);
        if (!refused)
            code = nfs_link_wait(*link, call, deadline_ns);
        *reasoned = false;
        if (code != -ECONNRESET && !(code == -ESTALE && !again))
            break;
        nfs_link_drop(*link);
        *link = NULL;
        if (again)
            clock_sleep_ns(RETRY_NS);
        again = true;
        code = clock_now_ns() < deadline_ns ? 0 : -ETIMEDOUT;
        if (code)
            return code;
    }
    if (code == -ETIMEDOUT) {
        nfs_link_drop(*link);
        *link = NULL;
    }
    return again && code && code == action->done_by_first ? 0 : code;
}

/* Like perform(), for calls that leave nothing open. reply: of this many bytes; NULL: none. */
static int ask_server(const struct nfs_action *action, const char *url, const char *to, void *reply,
                      size_t bytes)
{
    struct nfs_call call = {.into = reply, .bytes = bytes};
    struct nfs_link *link = NULL;
    bool reasoned;
    int code = perform(action, url, to, deadline(), &call, &link, &reasoned);

    if (link)
        nfs_link_give(link);
    return code < 0 && !reasoned ? nfs_fail(code, action->what, url) : code < 0 ? code : 0;
}

/* ---- names ---- */

static int ask_status(const struct nfs_action *action, const char *path,
                      struct store_status *status)
{
    struct nfs_stat_64 found;
    int code = ask_server(action, path, NULL, &found, sizeof found);

    if (code == 0)
        *status = status_of(&found);
    return code;
}

static int nfs_store_stat(const char *path, struct store_status *status)
{
    return ask_status(&look_at, path, status);
}

static int nfs_store_rename(const char *from, const char *to)
{
    return ask_server(&rename_name, from, to, NULL, 0);
}

static int nfs_store_remove(const char *path)
{
    struct store_status status;
    int code = ask_status(&look_and_remove, path, &status);

    return code ? code
                : ask_server(status.kind == STORE_FOLDER ? &remove_folder : &unlink_name, path,
                             NULL, NULL, 0);
}

static int nfs_store_make_folder(const char *path)
{
    return ask_server(&make_folder, path, NULL, NULL, 0);
}

static int nfs_store_free_bytes(const char *path, uint64_t *bytes)
{
    struct nfs_statvfs_64 found;
    int code = ask_server(&get_free_space, path, NULL, &found, sizeof found);

    if (code == 0)
        *bytes = found.f_bavail * found.f_frsize;
    return code;
}

/* ---- folders ---- */

static int visit_one(const char *path, const struct nfsdirent *found, store_visit visit,
                     void *context)
{
    struct store_status status = {
        .kind = store_kind_of(found->mode),
        .bytes = found->size,
        .mtime_ns = store_time_ns((uint64_t)found->mtime.tv_sec, found->mtime_nsec),
        .ctime_ns = store_time_ns((uint64_t)found->ctime.tv_sec, found->ctime_nsec),
        .device = found->dev,
        .inode = found->inode,
        .owner = found->uid,
        .mode = found->mode,
    };
    struct store_entry entry = {.name = found->name, .kind = status.kind, .status = &status};

    /* An entry's name must be one path component, so that a server cannot point elsewhere. */
    if (strchr(found->name, '/'))
        return fail(EBADMSG, "%s: the server lists a name that contains a slash", path);
    if (!*found->name || strcmp(found->name, ".") == 0 || strcmp(found->name, "..") == 0)
        return 0;
    if (S_ISLNK(found->mode)) {
        entry.is_link = true;
        char *target = file_join(path, found->name);
        if (!target)
            return -ENOMEM;
        if (nfs_store_stat(target, &status))
            status.kind = STORE_OTHER; /* a dangling link */
        entry.kind = status.kind;
        free(target);
    }
    return visit(context, &entry);
}

/* Once a folder is open, libnfs has all its entries, with attributes. */
static int nfs_store_list(const char *path, store_visit visit, void *context)
{
    struct nfs_call call = {0};
    struct nfs_link *link = NULL;
    bool reasoned;
    int code = perform(&list_folder, path, NULL, deadline(), &call, &link, &reasoned);

    if (code == 0) {
        const struct nfsdirent *found;
        while (code == 0 && (found = nfs_readdir(link->context, call.body)))
            code = visit_one(path, found, visit, context);
        nfs_closedir(link->context, call.body);
    } else if (!reasoned) {
        code = nfs_fail(code, list_folder.what, path);
    }
    if (link)
        nfs_link_give(link);
    return code;
}

/* ---- open files ---- */

static void lose(struct nfs_file *nfs)
{
    nfs_link_drop(nfs->link);
    nfs->link = NULL;
}

/* Open the file on a link of its own. If the link is lost between open and stat, try once more. */
static int open_file(struct nfs_file *nfs, const char *path, enum store_access access,
                     struct store_status *status)
{
    const struct nfs_action *opening = &openings[access];
    uint64_t deadline_ns = deadline();
    bool reasoned;

    for (;;) {
        struct nfs_call call = {0};
        int code = perform(opening, path, NULL, deadline_ns, &call, &nfs->link, &reasoned);
        if (code == 0) {
            struct nfs_stat_64 found;
            struct nfs_call look = {.into = &found, .bytes = sizeof found};
            nfs->handle = call.body;
            code = nfs_fstat64_async(nfs->link->context, nfs->handle, nfs_call_answer, &look)
                       ? -ECONNRESET
                       : nfs_link_wait(nfs->link, &look, deadline_ns);
            if (code == 0)
                *status = status_of(&found);
        }
        if (code == 0)
            return 0;
        if (nfs->link && nfs->link->context) {
            nfs_link_give(nfs->link);
            nfs->link = NULL;
        } else {
            lose(nfs);
        }
        if (code != -ECONNRESET)
            return reasoned && code != -ETIMEDOUT ? code : nfs_fail(code, opening->what, path);
    }
}

static int nfs_store_open(const char *path, enum store_access access, struct store_file **file)
{
    struct nfs_file *nfs = memory_zeroed(sizeof *nfs);

    if (!nfs)
        return -ENOMEM;
    int code = open_file(nfs, path, access, &nfs->file.status);
    if (code) {
        free(nfs);
        return code;
    }
    *file = &nfs->file;
    return 0;
}

static int read_block(struct nfs_file *nfs, void *buffer, size_t bytes, uint64_t offset)
{
    uint64_t deadline_ns = deadline();

    for (;;) {
        struct nfs_call call = {.into = buffer};
        int code = 0;
        if (!nfs->link) { /* reopen after a lost connection: the same file must still exist */
            const struct store_status *before = &nfs->file.status;
            struct store_status now;
            code = open_file(nfs, nfs->file.path, STORE_READ, &now);
            if (code)
                return code;
            if (now.bytes != before->bytes || now.mtime_ns != before->mtime_ns ||
                now.inode != before->inode) {
                lose(nfs); /* a further read must not find it open */
                return fail(ESTALE, "%s: the file changed while it was read", nfs->file.path);
            }
        }
        code = -ECONNRESET;
        if (libnfs_pread_async(nfs->link->context, nfs->handle, buffer, bytes, offset,
                               nfs_call_answer, &call) == 0)
            code = nfs_link_wait(nfs->link, &call, deadline_ns);
        if (code >= 0)
            return code;
        if (code != -ECONNRESET && code != -ETIMEDOUT)
            return nfs_fail(code, "cannot read: ", nfs->file.path);
        lose(nfs);
        if (code == -ETIMEDOUT || clock_now_ns() > deadline_ns)
            return nfs_fail(-ETIMEDOUT, "", nfs->file.path);
    }
}

static ssize_t nfs_store_read_at(struct store_file *file, void *buffer, size_t bytes,
                                 uint64_t offset)
{
    size_t done = 0;

    while (done < bytes) {
        size_t block = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;
        int got = read_block(nfs_of(file), (char *)buffer + done, block, offset + done);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int lost_while_written(const char *url)
{
    return fail(ECONNRESET,
                "%s: connection lost while writing; when the server is back, repeat the same "
                "command",
                url);
}

/* Evaluate the result of a call that writes. */
static int judge_write(struct nfs_file *nfs, int code, const char *what)
{
    if (code >= 0)
        return code;
    if (code == -ECONNRESET || code == -ETIMEDOUT)
        lose(nfs);
    return code == -ECONNRESET ? lost_while_written(nfs->file.path)
                               : nfs_fail(code, what, nfs->file.path);
}

static int nfs_store_write_at(struct store_file *file, const void *buffer, size_t bytes,
                              uint64_t offset)
{
    struct nfs_file *nfs = nfs_of(file);
    size_t done = 0;

    while (done < bytes) {
        struct nfs_call call = {0};
        size_t block = bytes - done < BLOCK_BYTES ? bytes - done : BLOCK_BYTES;
        if (!nfs->link)
            return lost_while_written(file->path);
        int code = -ECONNRESET;
        const char *from = (const char *)buffer + done;
#ifdef LIBNFS_API_V2
        const int refused = nfs_pwrite_async(nfs->link->context, nfs->handle, from, block,
                                             offset + done, nfs_call_answer, &call);
#else
        const int refused = nfs_pwrite_async(nfs->link->context, nfs->handle, offset + done, block,
                                             (void *)(uintptr_t)from, nfs_call_answer, &call);
#endif
        if (!refused)
            code = nfs_link_wait(nfs->link, &call, deadline());
        code = judge_write(nfs, code == 0 ? -EIO : code, "cannot write: ");
        if (code < 0)
            return code;
        done += (size_t)code;
    }
    return 0;
}

static int nfs_store_close(struct store_file *file, bool sync)
{
    struct nfs_file *nfs = nfs_of(file);
    struct nfs_call synced = {0}, closed = {0};
    int code = 0;

    if (!nfs->link)
        return sync ? lost_while_written(file->path) : 0;
    if (sync) {
        code = -ECONNRESET;
        if (nfs_fsync_async(nfs->link->context, nfs->handle, nfs_call_answer, &synced) == 0)
            code = nfs_link_wait(nfs->link, &synced, deadline());
        code = judge_write(nfs, code, "cannot sync: ");
    }
    if (!nfs->link)
        return code;
    /* The outcome does not matter: synced data is safe, and a file only read needs no close. */
    if (nfs_close_async(nfs->link->context, nfs->handle, nfs_call_answer, &closed) == 0)
        nfs_link_wait(nfs->link, &closed, deadline());
    if (nfs->link->context && closed.done)
        nfs_link_give(nfs->link);
    else
        lose(nfs);
    return code < 0 ? code : 0;
}

/* ---- drafts ---- */

static int check_target(const char *path)
{
    struct store_status status;
    int code = ask_status(&look_at_name, path, &status);

    if (code)
        return code == -ENOENT ? 0 : code;
    return status.kind == STORE_FILE
               ? 0
               : fail(status.kind == STORE_FOLDER ? EISDIR : EEXIST,
                      "%s: is %s: only a regular file is replaced; name another", path,
                      file_kind_text((mode_t)status.mode));
}

static int nfs_store_draft(const char *path, struct store_file **file)
{
    char suffix[FILE_DRAFT_SUFFIX_BYTES];
    int code = file_draft_suffix(suffix);

    if (code == 0)
        code = check_target(path);
    if (code)
        return code;
    char *kept = file_draft_path(path, suffix);
    code = kept ? nfs_store_open(kept, STORE_CREATE, file) : fail(ENOMEM, "out of memory");
    if (code)
        free(kept);
    else
        nfs_of(*file)->draft_path = kept;
    return code;
}

/* Check that the draft's name is still the file that was created. */
static int check_draft(const struct nfs_file *nfs)
{
    struct store_status now;
    int code = ask_status(&look_at_name, nfs->draft_path, &now);

    if (code == 0 && (now.inode != nfs->file.status.inode || now.kind != STORE_FILE))
        code = fail(ESTALE, "%s: another process replaced it: not removed", nfs->draft_path);
    return code;
}

static int nfs_store_settle(struct store_file *file, bool commit)
{
    struct nfs_file *nfs = nfs_of(file);
    int code = nfs_store_close(file, commit);

    if (commit && code == 0)
        code = check_draft(nfs);
    if (commit && code == 0)
        code = check_target(file->path);
    if (commit && code == 0)
        code = nfs_store_rename(nfs->draft_path, file->path);
    fail_hold();
    if ((!commit || code) && check_draft(nfs) == 0)
        nfs_store_remove(nfs->draft_path);
    fail_release();
    free(nfs->draft_path);
    return code;
}

const struct store_ops store_nfs = {
    .scheme = "nfs://",
    .client = "libnfs",
    .title = "NFS without a mount",
    .stat = nfs_store_stat,
    .list = nfs_store_list,
    .open = nfs_store_open,
    .read_at = nfs_store_read_at,
    .write_at = nfs_store_write_at,
    .close = nfs_store_close,
    .draft = nfs_store_draft,
    .settle = nfs_store_settle,
    .rename = nfs_store_rename,
    .remove = nfs_store_remove,
    .make_folder = nfs_store_make_folder,
    .free_bytes = nfs_store_free_bytes,
};
