/* SPDX-License-Identifier: Apache-2.0
 *
 * protobuf: walk over the fields of one protocol-buffer message, in place. Copies and allocates
 * nothing: a field of bytes points into the message. (protobuf-c would copy each image.) Knows no
 * schema: the caller selects the numbers and wire types it wants and skips the others; a nested
 * message is walked by a cursor over the field's bytes. Pure, any thread.
 *
 * Source: "Encoding", protobuf.dev. Groups, deprecated since 2008, are rejected. */
#ifndef IOBENCH_FORMATS_PROTOBUF_H
#define IOBENCH_FORMATS_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

enum protobuf_wire {
    PROTOBUF_VARINT = 0,  /* value: unchanged; negative numbers fill 64 bits */
    PROTOBUF_FIXED64 = 1, /* value: the 8 bytes, little-endian */
    PROTOBUF_BYTES = 2,   /* bytes, count */
    PROTOBUF_FIXED32 = 5, /* value: the 4 bytes, little-endian */
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;
    const uint8_t *bytes; /* borrowed */
    size_t count;
};

struct protobuf_cursor {
    const uint8_t *at, *end;
};

static inline struct protobuf_cursor protobuf_start(const void *message, size_t bytes)
{
    const uint8_t *at = message;
    /* A field of another type has no bytes, and NULL + 0 is undefined. */
    return (struct protobuf_cursor){.at = at, .end = bytes ? at + bytes : at};
}

/* Walk a field of PROTOBUF_BYTES as a message. */
static inline struct protobuf_cursor protobuf_nested(const struct protobuf_field *field)
{
    return protobuf_start(field->bytes, field->count);
}

/* Returns 1 and *value, 0 at the end, -EBADMSG if the number is truncated or longer than 64 bits;
 * for packed numbers. No reason is recorded: the caller knows what the message is. */
int protobuf_varint(struct protobuf_cursor *cursor, uint64_t *value);

/* Returns 1 and the next field, 0 at the end, -EBADMSG if the message is malformed (no reason). */
int protobuf_next(struct protobuf_cursor *cursor, struct protobuf_field *field);

/* ---- writing ---- */

/* Return the size of a varint; write a varint and return its end. */
size_t protobuf_varint_bytes(uint64_t value);
uint8_t *protobuf_put_varint(uint8_t *to, uint64_t value);

static inline uint8_t *protobuf_put_tag(uint8_t *to, uint32_t number, enum protobuf_wire wire)
{
    return protobuf_put_varint(to, (uint64_t)number << 3 | (uint64_t)wire);
}

#endif
