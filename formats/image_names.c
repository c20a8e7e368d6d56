/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image_names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Unread: accepted by torchvision, Pillow or OpenCV, but of no kind of base/image_header.h. */
static const struct {
    const char *extension;
    enum image_name kind;
} names[] = {
    {"jpg", IMAGE_NAME_READ},    {"jpeg", IMAGE_NAME_READ},   {"png", IMAGE_NAME_READ},
    {"webp", IMAGE_NAME_READ},   {"bmp", IMAGE_NAME_READ},    {"gif", IMAGE_NAME_READ},
    {"tif", IMAGE_NAME_UNREAD},  {"tiff", IMAGE_NAME_UNREAD}, {"ppm", IMAGE_NAME_READ},
    {"pgm", IMAGE_NAME_READ},    {"pbm", IMAGE_NAME_UNREAD},  {"pnm", IMAGE_NAME_UNREAD},
    {"jp2", IMAGE_NAME_UNREAD},  {"j2k", IMAGE_NAME_UNREAD},  {"jxl", IMAGE_NAME_UNREAD},
    {"jpe", IMAGE_NAME_UNREAD},  {"jfif", IMAGE_NAME_UNREAD}, {"avif", IMAGE_NAME_UNREAD},
    {"heic", IMAGE_NAME_UNREAD}, {"heif", IMAGE_NAME_UNREAD}, {"exr", IMAGE_NAME_UNREAD},
    {"hdr", IMAGE_NAME_UNREAD},  {"tga", IMAGE_NAME_UNREAD},  {"dng", IMAGE_NAME_UNREAD},
};

enum image_name image_name_of(const char *extension)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(extension, names[i].extension) == 0)
            return names[i].kind;
    return IMAGE_NAME_NONE;
}

enum image_name image_name_of_file(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? image_name_of(dot + 1) : IMAGE_NAME_NONE;
}

bool image_name_is_read(const char *name)
{
    return image_name_of_file(name) == IMAGE_NAME_READ;
}

bool image_name_ends(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);

    return length > end_length && strcasecmp(name + length - end_length, end) == 0;
}
