/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/json_file.h"

#include "base/fail.h"
#include "base/json.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int json_file_write(const char *path, json_t *root)
{
    int code = 0;

    if (!root)
        return fail(ENOMEM, "out of memory for JSON");
    char *text = report_json_text(root, REPORT_DIGITS);
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
