/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "formats/protobuf.h"

#include <errno.h>

static void fields_of_each_wire_type(void **unused)
{
    const uint8_t message[] = {
        0x08, 0x96, 0x01,                               /* 1: varint 150 */
        0x11, 1,    0,    0,    0,    0,    0, 0, 0x80, /* 2: fixed64 */
        0x1a, 3,    'a',  'b',  'c',                    /* 3: bytes */
        0x25, 4,    3,    2,    1,                      /* 4: fixed32 */
        0xf8, 0xff, 0xff, 0xff, 0x0f, 0x00,             /* 2^29 - 1: varint 0 */
    };
    struct protobuf_cursor cursor = protobuf_start(message, sizeof message);
    struct protobuf_field field;

    assert_int_equal(protobuf_next(&cursor, &field), 1);
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, 150);
    assert_int_equal(protobuf_next(&cursor, &field), 1);
    assert_true(field.wire == PROTOBUF_FIXED64 && field.value == 0x8000000000000001);
    assert_int_equal(protobuf_next(&cursor, &field), 1);
    assert_true(field.wire == PROTOBUF_BYTES && field.count == 3 && field.bytes == message + 14);
    assert_int_equal(protobuf_next(&cursor, &field), 1);
    assert_true(field.wire == PROTOBUF_FIXED32 && field.value == 0x01020304);
    assert_int_equal(protobuf_next(&cursor, &field), 1);
    assert_true(field.number == (1u << 29) - 1 && field.value == 0);
    assert_int_equal(protobuf_next(&cursor, &field), 0);
}

static void expect_damage(const char *bytes, size_t count)
{
    struct protobuf_cursor cursor = protobuf_start(bytes, count);
    struct protobuf_field field;

    assert_int_equal(protobuf_next(&cursor, &field), -EBADMSG);
}

static void damage_is_found(void **unused)
{
    expect_damage("\x08", 1);                                              /* not a number */
    expect_damage("\x08\x80", 2);                                          /* truncated */
    expect_damage("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12); /* over 64 bits */
    expect_damage("\x1a\x02x", 3);                                     /* longer than the input */
    expect_damage("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11); /* 2^64 - 1 bytes */
    expect_damage("\x11"
                  "1234567",
                  8);
    expect_damage("\x25"
                  "123",
                  4);
    expect_damage("\x00\x00", 2); /* field 0 */
    expect_damage("\x0b", 1);     /* a group */
    expect_damage("\x0e", 1);     /* wire type 6 */
}

static void varints_come_back(void **unused)
{
    const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t bytes[10];
        size_t count = (size_t)(protobuf_put_varint(bytes, values[i]) - bytes);
        struct protobuf_cursor cursor = protobuf_start(bytes, count);
        uint64_t value = 1;
        assert_int_equal(count, protobuf_varint_bytes(values[i]));
        assert_int_equal(protobuf_varint(&cursor, &value), 1);
        assert_true(value == values[i] && cursor.at == cursor.end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_each_wire_type),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(varints_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
