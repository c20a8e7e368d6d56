/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/protobuf.h"

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>

int protobuf_varint(struct protobuf_cursor *cursor, uint64_t *value)
{
    uint64_t result = 0;

    assert(cursor->at <= cursor->end);
    if (cursor->at == cursor->end)
        return 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return -EBADMSG;
        uint8_t byte = *cursor->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return 1;
        }
    }
    return -EBADMSG;
}

/* Returns 1 if bytes remain after the cursor; a missing length or number is damage. */
static int next_fixed(struct protobuf_cursor *cursor, struct protobuf_field *field, size_t bytes)
{
    if ((size_t)(cursor->end - cursor->at) < bytes)
        return -EBADMSG;
    field->value = bytes == 8 ? bytes_le64(cursor->at) : bytes_le32(cursor->at);
    cursor->at += bytes;
    return 1;
}

int protobuf_next(struct protobuf_cursor *cursor, struct protobuf_field *field)
{
    uint64_t tag, count;
    int got = protobuf_varint(cursor, &tag);

    if (got != 1)
        return got;
    if (tag >> 3 == 0 || tag >> 32)
        return -EBADMSG;
    *field = (struct protobuf_field){.number = (uint32_t)(tag >> 3),
                                     .wire = (enum protobuf_wire)(tag & 7)};
    switch (field->wire) {
    case PROTOBUF_VARINT:
        return protobuf_varint(cursor, &field->value) == 1 ? 1 : -EBADMSG;
    case PROTOBUF_FIXED64:
        return next_fixed(cursor, field, 8);
    case PROTOBUF_BYTES:
        if (protobuf_varint(cursor, &count) != 1 || count > (uint64_t)(cursor->end - cursor->at))
            return -EBADMSG;
        field->bytes = cursor->at;
        field->count = (size_t)count;
        cursor->at += count;
        return 1;
    case PROTOBUF_FIXED32:
        return next_fixed(cursor, field, 4);
    }
    return -EBADMSG;
}

size_t protobuf_varint_bytes(uint64_t value)
{
    size_t bytes = 1;

    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

uint8_t *protobuf_put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}
