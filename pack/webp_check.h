/* SPDX-License-Identifier: Apache-2.0
 * webp_check: decodes a WebP whose headers are good. Without libwebp, does nothing. */
#ifndef IOBENCH_PACK_WEBP_CHECK_H
#define IOBENCH_PACK_WEBP_CHECK_H

#include <stddef.h>

/* Returns 0, or -EBADMSG or -ENOMEM with a reason. */
int webp_check(const void *bytes, size_t count);

#endif
