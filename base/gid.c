/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gid.h"

#include <arpa/inet.h>

int gid_rank(const struct in6_addr *gid, bool is_v2)
{
    if (IN6_IS_ADDR_UNSPECIFIED(gid))
        return GID_NONE;
    if (!is_v2)
        return GID_V1;
    return IN6_IS_ADDR_V4MAPPED(gid)    ? GID_V2_IPV4
           : IN6_IS_ADDR_LINKLOCAL(gid) ? GID_LINK_LOCAL
                                        : GID_V2;
}

void gid_text(const struct in6_addr *gid, char *text)
{
    if (IN6_IS_ADDR_V4MAPPED(gid))
        inet_ntop(AF_INET, &gid->s6_addr[12], text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}
