/* SPDX-License-Identifier: Apache-2.0
 * The walk over protocol-buffer messages, each field of bytes as a message of its own. */
#include "tests/fuzz/fuzz.h"

#include "formats/protobuf.h"

#include <errno.h>

enum { DEPTH = 20 };

static void walk(struct protobuf_cursor cursor, int depth)
{
    const uint8_t *begin = cursor.at;
    struct protobuf_field field;
    int got;

    while ((got = protobuf_next(&cursor, &field)) > 0) {
        FUZZ_CHECK(field.number > 0 && cursor.at > begin && cursor.at <= cursor.end);
        if (field.wire != PROTOBUF_BYTES)
            continue;
        FUZZ_CHECK(field.bytes >= begin && field.bytes + field.count <= cursor.end);
        if (depth < DEPTH)
            walk(protobuf_nested(&field), depth + 1);
    }
    FUZZ_CHECK(got == -EBADMSG || (got == 0 && cursor.at == cursor.end));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    uint8_t *message = fuzz_exact(bytes, count);

    walk(protobuf_start(message, count), 0);
    free(message);
    return 0;
}
