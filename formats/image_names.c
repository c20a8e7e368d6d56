/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/image_names.h"

#include "base/fail.h"
#include "base/file.h"

#include <errno.h>
#include <jansson.h>
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

/* extension: without the dot, in any case. */
static enum image_name image_name_of(const char *extension)
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

/* ---- members of a sample ---- */

const char *tar_members_split(const char *name, size_t *key_bytes)
{
    const char *base = file_name(name);
    const char *dot = strchr(base, '.');
    const size_t first = strcspn(name, "/"); /* its first component: "__this__"? */
    const bool is_meta =
        first >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + first - 2, "__", 2) == 0;

    if (!dot || dot == base || is_meta)
        return NULL;
    *key_bytes = (size_t)(dot - name);
    return dot + 1;
}

/* Classify an extension of several parts by its last one. */
static enum image_name image_name_of_last(const char *extension)
{
    const char *dot = strrchr(extension, '.');

    return image_name_of(dot ? dot + 1 : extension);
}

enum tar_member_rank tar_members_rank(const struct tar_members *members, const char *extension)
{
    if (members->image)
        return strcasecmp(extension, members->image) == 0 ? TAR_PLAIN_IMAGE : TAR_NO_IMAGE;
    return image_name_of(extension) == IMAGE_NAME_READ        ? TAR_PLAIN_IMAGE
           : image_name_of_last(extension) == IMAGE_NAME_READ ? TAR_IMAGE_OF_PARTS
                                                              : TAR_NO_IMAGE;
}

bool tar_members_tell(const char *extension)
{
    return image_name_of_last(extension) != IMAGE_NAME_NONE || strcasecmp(extension, "cls") == 0;
}

bool tar_members_may_label(const char *extension)
{
    return strcasecmp(extension, "cls") == 0 || strcasecmp(extension, "json") == 0;
}

int tar_members_label(const struct tar_members *members, const char *extension, const char *text,
                      size_t bytes, struct sample *sample)
{
    static const char *const usual[] = {"label", "cls", "class"};
    json_error_t error;

    if (strcasecmp(extension, "cls") == 0) {
        sample_set_label_text(sample, text, bytes);
        return 0;
    }
    json_t *document = json_loadb(text, bytes, 0, &error);
    if (!document)
        return fail(EBADMSG, "a .json file of a sample: %s", error.text);
    const json_t *value = members->label ? json_object_get(document, members->label) : NULL;
    for (size_t i = 0; !members->label && i < sizeof usual / sizeof *usual; i++) {
        const json_t *other = json_object_get(document, usual[i]);
        if (json_is_number(other) && !json_is_number(value))
            value = other;
        if (json_is_string(other) && !value)
            value = other;
    }
    if (json_is_number(value))
        sample_set_label(sample, json_number_value(value));
    else if (json_is_string(value))
        sample_set_label_text(sample, json_string_value(value), json_string_length(value));
    json_decref(document);
    return 0;
}
