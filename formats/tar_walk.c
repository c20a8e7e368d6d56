/* SPDX-License-Identifier: Apache-2.0
 *
 * A header block: name 100 bytes, mode 8, uid 8, gid 8, size 12 (at 124), time 12, checksum 8 (at
 * 148), type 1 (at 156), link name 100, magic 6 (at 257), version 2, ..., prefix 155 (at 345). The
 * contents follow, padded to whole blocks; two blocks of zeros end the archive. A header may be
 * preceded by entries that describe it: type 'L' (its contents are the name) and 'x' (lines "LENGTH
 * KEY=VALUE\n"). Of the 'x' lines only path, size and those that mark a sparse file matter here. */
#include "formats/tar_walk.h"

#include <errno.h>
#include <string.h>

#include "base/vector.h"

enum {
    NAME_BYTES = 100,
    SIZE_OFFSET = 124,
    SIZE_BYTES = 12,
    CHECKSUM_OFFSET = 148,
    CHECKSUM_BYTES = 8,
    TYPE_OFFSET = 156,
    MAGIC_OFFSET = 257,
    PREFIX_OFFSET = 345,
    PREFIX_BYTES = 155,
    GNU_MORE_OFFSET = 482,    /* another block of the sparse map follows */
    SPARSE_MORE_OFFSET = 504, /* the same flag, in such a block */
};

static int wrong(struct tar_walk *walk, uint64_t offset, const char *what)
{
    walk->wrong = what;
    walk->wrong_offset = offset;
    return -EBADMSG;
}

/* Parse octal digits between spaces, terminated by a space or NUL. */
static bool take_octal(const uint8_t *field, size_t bytes, uint64_t *number)
{
    size_t at = 0, digits = 0;

    for (*number = 0; at < bytes && field[at] == ' '; at++)
        ;
    for (; at < bytes && field[at] >= '0' && field[at] <= '7'; at++, digits++)
        *number = *number << 3 | (uint64_t)(field[at] - '0'); /* at most 12 digits: 36 bits */
    return digits > 0 && (at == bytes || field[at] == ' ' || field[at] == '\0');
}

/* Parse octal digits or, if the first bit is set, an 11-byte number, of which 8 bytes are
 * supported. */
static bool take_size(const uint8_t *field, uint64_t *number)
{
    if (field[0] < 0x80)
        return take_octal(field, SIZE_BYTES, number);
    *number = 0;
    if (field[0] != 0x80)
        return false; /* negative, or larger than any file */
    for (size_t i = 1; i < SIZE_BYTES - 8; i++)
        if (field[i])
            return false;
    for (size_t i = SIZE_BYTES - 8; i < SIZE_BYTES; i++)
        *number = *number << 8 | field[i];
    return *number < UINT64_MAX / 2;
}

/* The checksum is the sum of all bytes, with its own field counted as spaces; some old writers
 * summed signed bytes, so each byte from 128 on counted 256 less. Every header of every record is
 * summed, so the loops are vectorised and the second one runs only if the first sum differs. */
bool tar_is_header(const uint8_t *block)
{
    const uint8_t *own = block + CHECKSUM_OFFSET;
    uint32_t sum = CHECKSUM_BYTES * ' ', high = 0;
    uint64_t written;

    if (!take_octal(own, CHECKSUM_BYTES, &written))
        return false;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += block[i];
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        sum -= own[i];
    if (sum == written)
        return true;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
        high += block[i] >> 7;
    for (size_t i = 0; i < CHECKSUM_BYTES; i++)
        high -= own[i] >> 7;
    return (int64_t)sum - 256 * (int64_t)high == (int64_t)written;
}

/* Take the name from the header, unless a preceding entry gave one. */
static void take_name(struct tar_walk *walk, const uint8_t *block)
{
    const char *name = (const char *)block, *prefix = name + PREFIX_OFFSET;
    size_t bytes = 0;

    if (walk->has_name)
        return;
    /* GNU's own magic ends in spaces, and such a header has other fields where the prefix would
     * be. */
    if (memcmp(block + MAGIC_OFFSET, "ustar\0", 6) == 0 && *prefix) {
        bytes = strnlen(prefix, PREFIX_BYTES);
        memcpy(walk->name, prefix, bytes);
        walk->name[bytes++] = '/';
    }
    size_t length = strnlen(name, NAME_BYTES);
    memcpy(walk->name + bytes, name, length);
    walk->name[bytes + length] = '\0';
}

static bool has_key(const char *line, size_t bytes, const char *key)
{
    size_t length = strlen(key);

    return bytes >= length && memcmp(line, key, length) == 0;
}

static int take_pax(struct tar_walk *walk, uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset + bytes;

    while (offset < end) {
        size_t count = end - offset < TAR_NAME_BYTES ? (size_t)(end - offset) : TAR_NAME_BYTES;
        int code = 0;
        const char *line = (const char *)walk->source(walk->context, offset, count, &code);
        if (!line)
            return code;
        uint64_t length = 0;
        size_t at = 0;
        for (; at < count && at < 12 && line[at] >= '0' && line[at] <= '9'; at++)
            length = length * 10 + (uint64_t)(line[at] - '0');
        if (at == 0 || at == count || line[at] != ' ' || length <= at + 1 || length > end - offset)
            return wrong(walk, offset, "a line of a pax header has the wrong length");
        at++;
        bool whole = length <= count;
        if (whole && line[length - 1] != '\n')
            return wrong(walk, offset, "a line of a pax header does not end");
        const size_t text = (whole ? (size_t)length - 1 : count) - at;
        bool good = true;
        line += at; /* "key=value", of which at most TAR_NAME_BYTES are there */
        if (has_key(line, text, "path=")) {
            good = whole;
            memcpy(walk->name, line + 5, text - 5);
            walk->name[text - 5] = '\0';
            walk->has_name = true;
        } else if (has_key(line, text, "size=")) {
            walk->has_bytes = true;
            walk->pax_bytes = 0;
            for (size_t i = 5; i < text && good; i++) {
                good = line[i] >= '0' && line[i] <= '9' && walk->pax_bytes <= UINT64_MAX / 20;
                walk->pax_bytes = walk->pax_bytes * 10 + (uint64_t)(line[i] - '0');
            }
        } else if (has_key(line, text, "GNU.sparse.")) {
            walk->is_sparse = true;
        }
        if (!good)
            return wrong(walk, offset, "a path or size of a pax header is malformed");
        offset += length;
    }
    return 0;
}

/* Entries before a header describe that header only. */
static void forget(struct tar_walk *walk)
{
    walk->has_name = walk->has_bytes = walk->is_sparse = false;
}

/* Read the header at walk->offset. Returns 1 if one was read, with type, size and offset of its
 * contents; 0 at the end. */
static int take_header(struct tar_walk *walk, uint8_t *type, uint64_t *offset, uint64_t *bytes)
{
    const uint64_t header = walk->offset, left = walk->bytes - header;
    int code = 0;

    if (left == 0)
        return 0;
    if (left < TAR_BLOCK_BYTES)
        return wrong(walk, header, "the archive ends within a header: truncated");
    const uint8_t *block = walk->source(walk->context, header, TAR_BLOCK_BYTES, &code);
    if (!block)
        return code;
    if (block[0] == 0 && memcmp(block, block + 1, TAR_BLOCK_BYTES - 1) == 0) {
        walk->ended = true;
        return 0;
    }
    if (!tar_is_header(block))
        return wrong(walk, header, "no tar header: its checksum is wrong");
    *type = block[TYPE_OFFSET];
    *offset = header + TAR_BLOCK_BYTES;
    if (!take_size(block + SIZE_OFFSET, bytes))
        return wrong(walk, header, "the size in a tar header is malformed");
    if (*type == 'L' || *type == 'K' || *type == 'x' || *type == 'g' || *type == 'S') {
        /* Further blocks of a GNU sparse file's map may follow its header. */
        for (bool more = *type == 'S' && block[GNU_MORE_OFFSET]; more; *offset += TAR_BLOCK_BYTES) {
            if (walk->bytes - *offset < TAR_BLOCK_BYTES)
                return wrong(walk, *offset, "the archive ends within a header: truncated");
            const uint8_t *map = walk->source(walk->context, *offset, TAR_BLOCK_BYTES, &code);
            if (!map)
                return code;
            more = map[SPARSE_MORE_OFFSET] != 0;
        }
    } else {
        take_name(walk, block);
        if (walk->has_bytes)
            *bytes = walk->pax_bytes;
        if (*type >= '1' && *type <= '6')
            *bytes = 0; /* links, devices and folders have no contents, whatever the field says */
    }
    if (*bytes > walk->bytes - *offset)
        return wrong(walk, header, "an entry goes past the end of the archive: truncated");
    return 1;
}

int tar_next(struct tar_walk *walk, struct tar_entry *entry)
{
    uint64_t first = walk->offset, offset = 0, bytes = 0;
    uint8_t type = 0;
    int code;

    forget(walk);
    while ((code = take_header(walk, &type, &offset, &bytes)) == 1) {
        if (type == 'L') {
            if (bytes == 0 || bytes > TAR_NAME_BYTES)
                return wrong(walk, offset, "a name of more than 4096 bytes");
            const uint8_t *name = walk->source(walk->context, offset, (size_t)bytes, &code);
            if (!name)
                return code;
            memcpy(walk->name, name, (size_t)bytes);
            walk->name[bytes] = '\0';
            walk->has_name = true;
            code = 0;
        } else {
            code = type == 'x' ? take_pax(walk, offset, bytes) : 1;
        }
        if (code < 0)
            return code;
        uint64_t padded = (bytes + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
        walk->offset = padded > walk->bytes - offset ? walk->bytes : offset + padded;
        if (code == 0 || type == 'K')
            continue; /* it describes the header that follows */
        if (type != '5' && type != 'g') {
            *entry = (struct tar_entry){.header = first,
                                        .offset = offset,
                                        .bytes = bytes,
                                        .kind = type == '1'                      ? "a hard link"
                                                : type == '2'                    ? "a symbolic link"
                                                : walk->is_sparse || type == 'S' ? "a sparse file"
                                                : type == '0' || type == '\0' || type == '7'
                                                    ? NULL
                                                    : "not a regular file",
                                        .name = walk->name};
            return 1;
        }
        if (type != 'g')
            forget(walk);
        first = walk->offset;
    }
    return code;
}
