/* SPDX-License-Identifier: Apache-2.0
 *
 * server: the cache of a storage server, which is invisible from this machine. Two commands of the
 * user reach it: one drops its caches, the other prints the output of `cachectl status --json` on
 * the server. A drop that is not checked verifies nothing.
 *
 * Off the clock; main thread. Prints nothing.
 */
#ifndef IOBENCH_CACHECTL_SERVER_H
#define IOBENCH_CACHECTL_SERVER_H

#include "base/child.h"
#include "cachectl/residency.h"

enum server_state {
    SERVER_NONE, /* the files are local */
    SERVER_COLD,
    SERVER_UNVERIFIED,
    SERVER_WARM,
};

enum { SERVER_REASON_BYTES = 320 };

/* One reply of the check command. */
struct server_look {
    bool resident_known, disk_known;
    uint64_t resident_bytes, total_bytes; /* of the files, over all servers that reply */
    uint64_t disk_read_bytes;             /* by their disks, cumulative */
    char reason[160];                     /* why resident_bytes is unknown; else "" */
};

/* Outcome of a command. */
struct server_call {
    bool made;
    int status; /* exit status; negative errno if it did not exit */
    uint64_t took_ns;
    char output[CHILD_OUTPUT_BYTES];
};

struct server_result {
    enum server_state state;
    struct server_call drop, check;   /* the last of each */
    bool looked, looked_before;       /* the check command replied */
    struct server_look before, start; /* before the drop; before the run */
    bool disk_known;
    uint64_t disk_read_bytes;         /* during the run, for any client */
    char reason[SERVER_REASON_BYTES]; /* resident bytes, or why unverified; "" if cold */
};

struct server_request {
    const char *where; /* evidence of a server, "nfs4 at /mnt"; NULL: only the commands */
    const char *drop_command, *check_command; /* for /bin/sh; NULL: none */
    uint64_t set_bytes;                       /* of the data set */
    uint64_t read_bytes;                      /* of these, what is read; 0: all */
    uint64_t timeout_ns;                      /* per command; 0: none */
    const struct cache_observer *observer;    /* may be NULL */
};

/* Before a run, after local caches were dropped: check, drop, check again, and drop what the check
 * loaded. */
void server_make_cold(const struct server_request *request, struct server_result *result);

/* After a run: check what the server's disks read meanwhile. */
void server_look_after(const struct server_request *request, struct server_result *result);

/* Parse the output of the check command: JSON documents, each an object or an array of objects with
 * resident_bytes, total_bytes and disk_read_bytes, as in cachectl(1), and add the figures. Pure.
 * Returns 0, or -EPROTO with a reason. */
int server_parse(const char *text, struct server_look *look);

#endif
