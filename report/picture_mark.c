/* SPDX-License-Identifier: Apache-2.0 */
#include "report/picture_mark.h"

#include <string.h>

#define MARK "Made by iobench"

/* A chunk of text (length, type, keyword, text, CRC) before the last one, IEND. */
static const char png_mark[] = "\0\0\0\x18tEXtSoftware\0" MARK "\xb3\xc1\x30\x2a";
static const char png_end[] = "\0\0\0\0IEND\xae\x42\x60\x82";
static const char pdf_mark[] = "% " MARK "\n";
static const char xml_mark[] = "<!-- " MARK " -->\n";

static bool begins(const char *picture, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && memcmp(picture, with, strlen(with)) == 0;
}

struct picture_mark picture_mark_for(const char *picture, size_t bytes)
{
    const size_t tail = sizeof png_end - 1;

    if (begins(picture, bytes, "%PDF-"))
        return (struct picture_mark){.bytes = pdf_mark, .length = sizeof pdf_mark - 1};
    if (begins(picture, bytes, "<svg") || begins(picture, bytes, "<?xml"))
        return (struct picture_mark){.bytes = xml_mark, .length = sizeof xml_mark - 1};
    if (begins(picture, bytes, "\x89PNG") && bytes > tail &&
        memcmp(picture + bytes - tail, png_end, tail) == 0)
        return (struct picture_mark){
            .bytes = png_mark, .length = sizeof png_mark - 1, .tail = tail};
    return (struct picture_mark){.bytes = ""};
}

bool picture_mark_is_in(const char *end, size_t bytes)
{
    return memmem(end, bytes, MARK, strlen(MARK)) != NULL;
}
