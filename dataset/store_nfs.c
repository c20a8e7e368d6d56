/* SPDX-License-Identifier: Apache-2.0
 * Files of an NFS server, through libnfs. A call whose connection is lost is retried on a new
 * connection until the time-out, if it may safely be repeated. Writing a file may not: a restarted
 * server may have lost data that had not reached its disks, so the writer must start over. */
#include "dataset/nfs_link.h"
#include "dataset/store.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Large enough to keep the network busy: libnfs sends the parts of one call in parallel. */
enum { BLOCK_BYTES = 4 << 20 };
static const uint64_t RETRY_NS = 200000000;

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

static int no_answer(const char *url)
{
    return fail(ETIMEDOUT, "%s: no answer from the server for %.1f s", url,
                (double)store_timeout() / 1e9);
}

static int nfs_fail(int code, const char *what, const char *url)
{
    if (code == -ETIMEDOUT)
        return no_answer(url);
    return fail(code, "%s: %s%s", url, what, fail_errno_text(code));
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

/* One of the first three starts it. */
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

/* Like perform(), for calls that leave nothing open. */
static int ask_server(const struct nfs_action *action, const char *url, const char *to,
                      struct nfs_call *call)
{
    struct nfs_link *link = NULL;
    bool reasoned;
    int code = perform(action, url, to, deadline(), call, &link, &reasoned);

    if (link)
        nfs_link_give(link);
    return code < 0 && !reasoned ? nfs_fail(code, action->what, url) : code < 0 ? code : 0;
}

/* ---- names ---- */

static int ask_status(const struct nfs_action *action, const char *path,
                      struct store_status *status)
{
    struct nfs_stat_64 found;
    struct nfs_call call = {.into = &found, .bytes = sizeof found};
    int code = ask_server(action, path, NULL, &call);

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
    struct nfs_call call = {0};

    return ask_server(&rename_name, from, to, &call);
}

static int nfs_store_remove(const char *path)
{
    struct store_status status;
    struct nfs_call call = {0};
    int code = ask_status(&look_and_remove, path, &status);

    return code ? code
                : ask_server(status.kind == STORE_FOLDER ? &remove_folder : &unlink_name, path,
                             NULL, &call);
}

static int nfs_store_make_folder(const char *path)
{
    struct nfs_call call = {0};

    return ask_server(&make_folder, path, NULL, &call);
}

static int nfs_store_free_bytes(const char *path, uint64_t *bytes)
{
    struct nfs_statvfs_64 found;
    struct nfs_call call = {.into = &found, .bytes = sizeof found};
    int code = ask_server(&get_free_space, path, NULL, &call);

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
            return no_answer(nfs->file.path);
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
        if (libnfs_pwrite_async(nfs->link->context, nfs->handle, (const char *)buffer + done, block,
                                offset + done, nfs_call_answer, &call) == 0)
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
        code = fail(ESTALE, "%s: somebody replaced it: it stays", nfs->draft_path);
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
