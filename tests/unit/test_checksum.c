/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "decode/decoder.h"

#include <string.h>

/* The check value of CRC-32C, and the 32 zero bytes of RFC 3720, B.4. */
static void the_row_is_crc_and_length(void **unused)
{
    static const uint8_t zeros[32];
    const struct view view = {0};
    struct plugin_choice choice;
    struct decoder decoder;
    uint8_t row[8];

    assert_int_equal(plugin_choose("decoder", decoder_registry, "checksum", &choice), 0);
    assert_int_equal(decoder_open(&decoder, &choice), 0);
    assert_int_equal(decoder.traits.row_bytes, sizeof row);
    assert_false(choice.plugin->idle);

    struct decode_source source = {.bytes = "123456789", .length = 9};
    assert_int_equal(decoder_decode(&decoder, &source, &view, row), 0);
    assert_true(bytes_le64(row) == (UINT64_C(9) << 32 | 0xe3069283u));
    source = (struct decode_source){.bytes = zeros, .length = sizeof zeros};
    assert_int_equal(decoder_decode(&decoder, &source, &view, row), 0);
    assert_true(bytes_le64(row) == (UINT64_C(32) << 32 | 0x8a9136aau));
    source.length = 0;
    assert_int_equal(decoder_decode(&decoder, &source, &view, row), 0);
    assert_true(bytes_le64(row) == 0);
    assert_int_equal(decoder.figures.images, 3);
    assert_int_equal(decoder.figures.bytes, 41);
    decoder_close(&decoder);
    plugin_release(&choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_row_is_crc_and_length)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
