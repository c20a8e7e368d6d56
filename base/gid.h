/* SPDX-License-Identifier: Apache-2.0
 *
 * gid: which address (GID) of an Ethernet port RDMA should use. Pure.
 */
#ifndef IOBENCH_BASE_GID_H
#define IOBENCH_BASE_GID_H

#include <netinet/in.h>
#include <stdbool.h>

enum { GID_NONE = -1, GID_V1, GID_LINK_LOCAL, GID_V2, GID_V2_IPV4 };

/* Rank a GID: RoCE v2 with an IPv4 address is best, then v2 with a routable IPv6 address, then
 * link-local, then v1, which no router passes on. GID_NONE: not set. */
int gid_rank(const struct in6_addr *gid, bool is_v2);
/* Write the address into text, of INET6_ADDRSTRLEN bytes. */
void gid_text(const struct in6_addr *gid, char *text);

#endif
