/* SPDX-License-Identifier: Apache-2.0
 * What moves the bytes of the tcp transport, the best first. */
#include "cmd/net/tcp.h"

const struct tcp_engine *const tcp_engines[] = {
#ifdef HAVE_URING
    &tcp_uring,
#endif
    &tcp_plain,
    NULL,
};
