/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/json_file.h"

#include "base/fail.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *json_file_text_of(const char *text, size_t bytes)
{
    json_t *string = json_stringn(text, bytes);
    char *plain = string ? NULL : strndup(text, bytes);

    for (size_t i = 0; plain && i < bytes; i++)
        if ((unsigned char)plain[i] >= 0x80 || plain[i] == '\0')
            plain[i] = '?';
    if (plain)
        string = json_stringn(plain, bytes);
    free(plain);
    return string;
}

json_t *json_file_text(const char *text)
{
    return json_file_text_of(text, strlen(text));
}

/* A time of day in seconds has ten digits before the point; with 17 digits 0.1 would not be 0.1. */
enum { DIGITS = 15 };

int json_file_write(const char *path, json_t *root)
{
    int code = 0;

    if (!root)
        return fail(ENOMEM, "out of memory for JSON");
    char *text = report_json_text(root, DIGITS);
    if (!text)
        code = -ENOMEM;
    else if (strcmp(path, "-") == 0)
        puts(text);
    else
        code = report_write_file(path, text, strlen(text));
    free(text);
    json_decref(root);
    return code;
}
