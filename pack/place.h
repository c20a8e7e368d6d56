/* SPDX-License-Identifier: Apache-2.0
 *
 * place: the names in the folder that a data set is made in, on this machine or on a server.
 *
 * A name is a path below the folder ("" is the folder itself). Here each part of it is opened
 * without following links, so nobody who may write into the folder can turn a call to a file
 * elsewhere. Nothing is replaced, and only what was looked at is removed. Private to pack; one
 * thread at a time. 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_PACK_PLACE_H
#define IOBENCH_PACK_PLACE_H

#include "base/folder.h"

#include <stddef.h>
#include <stdint.h>

struct place {
    char *path;
    bool is_local;
    struct folder folder; /* when it is local */
};

enum place_kind { PLACE_FILE, PLACE_FOLDER, PLACE_OTHER };

struct place_entry {
    enum place_kind kind; /* of the name itself: a link is other */
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t names; /* hard links of a file; 1 on a server */
    uint64_t owner; /* 0 on a server: it knows who may do what */
    struct stat made;
};

int place_open(struct place *place, const char *path);
void place_close(struct place *place);

/* -ENOENT when it is not there. */
int place_look(const struct place *place, const char *name, struct place_entry *entry);
/* 1, 0 when it is not there, or a negative errno: then nobody knows. */
int place_has(const struct place *place, const char *name);

/* Each name in a folder, in no order. Not 0 ends it with that code. */
typedef int (*place_visit)(void *context, const char *name);
int place_list(const struct place *place, const char *name, place_visit visit, void *context);

int place_make_private(const struct place *place, const char *name); /* for this user alone */
int place_make(const struct place *place, const char *name);
int place_move(const struct place *place, const char *from, const char *to); /* -EEXIST: taken */
int place_remove(const struct place *place, const char *name, const struct place_entry *entry);
/* A folder of ours with all in it; the names of others stay, and are an error. */
int place_remove_tree(const struct place *place, const char *name);

int place_remove_itself(const struct place *place); /* when it is empty */

/* The text of a small file that its owner alone may write to: root, this user or the owner of the
 * folder; NUL-terminated, free() it. */
int place_load(const struct place *place, const char *name, size_t limit, char **text,
               size_t *bytes);
/* Append to a file, which is made when it is missing; synced. */
int place_append(const struct place *place, const char *name, const char *text);
int place_sync(const struct place *place, const char *name); /* names in that folder last */

#endif
