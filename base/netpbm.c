/* SPDX-License-Identifier: Apache-2.0 */
#include "base/netpbm.h"

#include <stdio.h>
#include <string.h>

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool netpbm_is(const void *image, size_t bytes)
{
    const uint8_t *at = image;

    return bytes >= 3 && at[0] == 'P' && (at[1] == '5' || at[1] == '6') &&
           (is_blank(at[2]) || at[2] == '#');
}

/* Skip blanks and comments, then read a number. Returns the position after it, NULL if there is
 * none or it has more than 9 digits. */
static const uint8_t *read_number(const uint8_t *at, const uint8_t *end, uint32_t *number)
{
    while (at < end && (is_blank(*at) || *at == '#')) {
        if (*at == '#')
            while (at < end && *at != '\n')
                at++;
        else
            at++;
    }
    const uint8_t *first = at;
    for (*number = 0; at < end && *at >= '0' && *at <= '9' && at - first < 9; at++)
        *number = *number * 10 + (uint32_t)(*at - '0');
    const bool goes_on = at < end && *at >= '0' && *at <= '9';
    return at > first && !goes_on ? at : NULL;
}

const char *netpbm_read(const void *image, size_t bytes, struct netpbm *header)
{
    const uint8_t *at = (const uint8_t *)image + 2, *end = (const uint8_t *)image + bytes;
    uint32_t numbers[3];

    *header = (struct netpbm){0};
    if (!netpbm_is(image, bytes))
        return "not a binary PPM or PGM";
    for (int i = 0; i < 3; i++)
        if (!(at = read_number(at, end, &numbers[i])))
            return "the PPM lacks its size, or a number in it has more than 9 digits";
    if (at == end || !is_blank(*at))
        return "the PPM has no blank after its header";
    if (!numbers[0] || !numbers[1])
        return "PPM without pixels";
    if (numbers[2] != 255)
        return "the PPM has values other than 0 to 255";
    header->width = numbers[0];
    header->height = numbers[1];
    header->channels = ((const uint8_t *)image)[1] == '6' ? 3 : 1;
    header->header_bytes = (size_t)(at + 1 - (const uint8_t *)image);
    return NULL;
}

size_t netpbm_pixel_bytes(const struct netpbm *header)
{
    return (size_t)header->width * header->height * header->channels;
}

size_t netpbm_write_header(char header[NETPBM_HEADER_MOST], uint32_t width, uint32_t height)
{
    return (size_t)snprintf(header, NETPBM_HEADER_MOST, "P6\n%u %u\n255\n", width, height);
}
