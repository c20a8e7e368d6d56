/* SPDX-License-Identifier: Apache-2.0
 *
 * server: what a storage server holds in its memory, which nobody can see from here. Two commands
 * of the user's reach it: one empties its caches, the other prints what `cachectl status --json`
 * prints on the server. An emptying that nothing looks at proves nothing.
 *
 * Off the clock; main thread. Nothing is printed.
 */
#ifndef IOBENCH_CACHECTL_SERVER_H
#define IOBENCH_CACHECTL_SERVER_H

#include "base/child.h"
#include "cachectl/each_file.h"

enum server_state {
    SERVER_NONE, /* the files are this machine's own */
    SERVER_COLD,
    SERVER_UNVERIFIED,
    SERVER_WARM,
};

enum { SERVER_REASON_BYTES = 320 };

/* What one answer of the check command says. */
struct server_look {
    bool resident_known, disk_known;
    uint64_t resident_bytes, total_bytes; /* of the files, on all servers that answer */
    uint64_t disk_read_bytes; /* by their disks, ever: only a difference means something */
    char reason[160];         /* why resident_bytes is not known; else "" */
};

/* How a command ended. */
struct server_call {
    bool made;
    int status; /* exit status; negative errno when it did not end */
    uint64_t took_ns;
    char output[CHILD_OUTPUT_BYTES];
};

struct server_result {
    enum server_state state;
    struct server_call drop, check;   /* the last of each */
    bool looked, looked_before;       /* the check command answered */
    struct server_look before, start; /* before the drop; before the run */
    bool disk_known;
    uint64_t disk_read_bytes;         /* during the run, by whomever it was asked */
    char reason[SERVER_REASON_BYTES]; /* what is resident, or why unverified; "" when cold */
};

struct server_request {
    const char
        *where; /* what says that there is a server, "nfs4 at /mnt"; NULL: only the commands */
    const char *drop_command, *check_command; /* for /bin/sh; NULL: none */
    uint64_t set_bytes;                       /* of the data set */
    uint64_t timeout_ns;                      /* of each command; 0: none */
    const struct cache_observer *observer;    /* may be NULL */
};

/* Before a run, after the caches here were dropped: ask what is resident, drop, ask again, and drop
 * what looking brought in. *result says what came of it. */
void server_make_cold(const struct server_request *request, struct server_result *result);

/* After it: what the server's disks read meanwhile. */
void server_look_after(const struct server_request *request, struct server_result *result);

/* The answer of the check command: one or more JSON documents, each an object or an array of
 * objects with resident_bytes, total_bytes and disk_read_bytes, as in cachectl(1). The figures are
 * added up. A pure function. 0, or -EPROTO with a reason. */
int server_parse(const char *text, struct server_look *look);

#endif
