/* SPDX-License-Identifier: Apache-2.0 */
#include "base/replaced.h"

#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MARK "Made by iobench"

enum { BEGIN_BYTES = 8192, /* a path and a key are within them */ MARK_REACH = 64 };

/* A chunk of text (length, type, keyword, text, CRC) before the last one, IEND. */
static const char png_mark[] = "\0\0\0\x18tEXtSoftware\0" MARK "\xb3\xc1\x30\x2a";
static const char png_end[] = "\0\0\0\0IEND\xae\x42\x60\x82";
static const char pdf_mark[] = "% " MARK "\n";
static const char xml_mark[] = "<!-- " MARK " -->\n";

static bool begins(const char *text, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static bool is_xml(const char *text, size_t bytes)
{
    return begins(text, bytes, "<svg") || begins(text, bytes, "<?xml");
}

struct picture_mark replaced_mark(const char *picture, size_t bytes)
{
    const size_t tail = sizeof png_end - 1;

    if (begins(picture, bytes, "%PDF-"))
        return (struct picture_mark){.bytes = pdf_mark, .length = sizeof pdf_mark - 1};
    if (is_xml(picture, bytes))
        return (struct picture_mark){.bytes = xml_mark, .length = sizeof xml_mark - 1};
    if (begins(picture, bytes, "\x89PNG") && bytes > tail &&
        memcmp(picture + bytes - tail, png_end, tail) == 0)
        return (struct picture_mark){
            .bytes = png_mark, .length = sizeof png_mark - 1, .tail = tail};
    return (struct picture_mark){.bytes = ""};
}

/* ---- JSON ---- */

/* A text of JSON, without its quotes. */
struct json_piece {
    const char *text;
    size_t length;
    bool is_key;
};

/* Take the next whole text of JSON from *at on. Returns false if there is none. */
static bool next_piece(const char *text, size_t bytes, size_t *at, struct json_piece *piece)
{
    size_t end;

    while (*at < bytes && text[*at] != '"')
        ++*at;
    for (end = *at + 1; end < bytes && text[end] != '"'; end++)
        end += text[end] == '\\';
    if (end >= bytes)
        return false;
    *piece = (struct json_piece){.text = text + *at + 1, .length = end - *at - 1};
    for (end++; end < bytes && memchr(" \n\r\t", text[end], 4); end++)
        ;
    piece->is_key = end < bytes && text[end] == ':';
    *at = end;
    return true;
}

/* Return the next key; at the end of a text the last piece, since a key may end it. */
static struct json_piece next_key(const char *text, size_t bytes, size_t *at)
{
    struct json_piece piece = {.text = ""};

    while (next_piece(text, bytes, at, &piece) && !piece.is_key)
        ;
    return piece;
}

static bool is_same_piece(struct json_piece one, struct json_piece other)
{
    return one.length == other.length && memcmp(one.text, other.text, one.length) == 0;
}

/* A document that names its schema replaces any of this program's: other keys are by chance. A text
 * that ends before its second key leaves that open. */
static bool is_same_json(const char *text, size_t bytes, const char *old, size_t old_bytes)
{
    size_t at = 0, old_at = 0;
    struct json_piece key = {.text = ""}, old_key = {.text = ""};

    next_piece(text, bytes, &at, &key);
    next_piece(old, old_bytes, &old_at, &old_key);
    if (text[0] != old[0] || !is_same_piece(key, old_key))
        return false;
    if (key.length == strlen("schema") && begins(key.text, key.length, "schema"))
        return next_piece(old, old_bytes, &old_at, &old_key) &&
               begins(old_key.text, old_key.length, "iobench-");
    key = next_key(text, bytes, &at);
    return key.length == 0 || is_same_piece(key, next_key(old, old_bytes, &old_at));
}

/* ---- all kinds ---- */

int replaced_check(const char *path, const char *text, size_t bytes)
{
    static const char html[] = "<!DOCTYPE html>\n";
    char old[BEGIN_BYTES], tail[MARK_REACH];
    struct stat status;

    if (!file_exists(path))
        return 0;
    const int fd = file_open(path, O_RDONLY, &status);
    if (fd < 0)
        return fd;
    const uint64_t file_bytes = (uint64_t)status.st_size;
    const ssize_t count = file_read_at(fd, old, sizeof old, 0, path);
    const ssize_t tail_count = file_read_at(
        fd, tail, sizeof tail, file_bytes > sizeof tail ? file_bytes - sizeof tail : 0, path);
    close(fd);
    if (count < 0 || tail_count < 0)
        return count < 0 ? (int)count : (int)tail_count;
    bool is_ours = count == 0;
    if (count == 0 || bytes == 0) {
        /* an empty file; a text without a beginning is like none */
    } else if (is_xml(text, bytes) || begins(text, bytes, "\x89PNG") ||
               begins(text, bytes, "%PDF-")) { /* pictures: by their mark and first byte */
        is_ours = old[0] == text[0] && memmem(tail, (size_t)tail_count, MARK, strlen(MARK));
    } else if (text[0] == '{' || text[0] == '[') {
        is_ours = is_same_json(text, bytes, old, (size_t)count);
    } else { /* by the first line, up to its second comma */
        size_t end = begins(text, bytes, html) ? strlen(html) : 0, commas = 0;
        for (; end < bytes && text[end] != '\n' && text[end] != '\r'; end++)
            if (text[end] == ',' && ++commas == 2)
                break;
        is_ours = (size_t)count >= end && memcmp(text, old, end) == 0 &&
                  (!memchr(text, ',', end) || (size_t)count == end || strchr(",\r\n", old[end]));
    }
    return is_ours ? 0
                   : fail(EEXIST,
                          "%s: file exists and does not begin like an older output of this kind: "
                          "not replaced; choose another file or remove this one",
                          path);
}
