/* SPDX-License-Identifier: Apache-2.0
 *
 * place: the names in the folder where a data set is made, on this machine or on a server.
 *
 * A name is a path below the folder ("" is the folder itself). Locally each component is opened
 * without following links, so nobody with write access to the folder can redirect a call to another
 * file. Nothing is replaced, and only what was checked is removed. Private to pack; one thread at a
 * time. Returns 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_PACK_PLACE_H
#define IOBENCH_PACK_PLACE_H

#include "base/folder.h"

#include <stddef.h>
#include <stdint.h>

struct place {
    char *path;
    bool is_local;
    struct folder folder; /* if local */
};

enum place_kind { PLACE_FILE, PLACE_FOLDER, PLACE_OTHER };

struct place_entry {
    enum place_kind kind; /* of the name itself: a link counts as other */
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t names; /* hard links of a file; 1 on a server */
    uint64_t owner; /* 0 on a server, which checks access itself */
    struct stat made;
};

int place_open(struct place *place, const char *path);
void place_close(struct place *place);

/* -ENOENT if missing. */
int place_look(const struct place *place, const char *name, struct place_entry *entry);
/* Returns 1 if it exists, 0 if not, or a negative errno if unknown. */
int place_has(const struct place *place, const char *name);

/* Called for each name in a folder, in no order. A non-zero result ends the listing with that
 * code. */
typedef int (*place_visit)(void *context, const char *name);
int place_list(const struct place *place, const char *name, place_visit visit, void *context);

int place_make_private(const struct place *place,
                       const char *name); /* accessible to this user only */
int place_make(const struct place *place, const char *name);
int place_move(const struct place *place, const char *from, const char *to); /* -EEXIST: exists */
int place_remove(const struct place *place, const char *name, const struct place_entry *entry);
/* Remove a folder of ours and its contents; other users' files stay and are an error. */
int place_remove_tree(const struct place *place, const char *name);

int place_remove_itself(const struct place *place); /* if empty */

/* Load a small file that only its owner may write: root, this user or the owner of the folder.
 * NUL-terminated; free() it. */
int place_load(const struct place *place, const char *name, size_t limit, char **text,
               size_t *bytes);
/* Append to a file, creating it if missing; synced. */
int place_append(const struct place *place, const char *name, const char *text);
int place_sync(const struct place *place, const char *name); /* make names in that folder durable */

#endif
