/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Generated from report/page/ and the library: report/local.mk. */
extern const unsigned char html_template[], html_style[], html_program[], html_library[],
    html_library_style[];

enum { NONCE_BYTES = 16, DIGITS = 9 };

void html_text(FILE *page, const char *text)
{
    for (text = escape_shown(text); *text; text++) {
        if (strchr("<>&\"'", *text))
            fprintf(page, "&#%d;", *text);
        else
            fputc(*text, page);
    }
}

/* Embedded as an image, a picture is inert whatever it contains, and its ids do not clash. */
void html_figure(FILE *page, const char *title, const char *words, const char *svg, size_t bytes,
                 int chart)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fputs("<figure", page);
    if (chart >= 0)
        fprintf(page, " data-chart=\"%d\"", chart);
    fputs("><h3>", page);
    html_text(page, title);
    fputs("</h3>", page);
    if (svg) {
        fputs("<img alt=\"", page);
        html_text(page, words);
        fputs("\" src=\"data:image/svg+xml;base64,", page);
        for (size_t i = 0; i < bytes; i += 3) { /* base64 */
            uint32_t group = 0;
            for (size_t k = 0; k < 3; k++)
                group = group << 8 | (i + k < bytes ? (unsigned char)svg[i + k] : 0U);
            for (size_t k = 0; k < 4; k++)
                fputc(i + k <= bytes ? digits[group >> (18 - 6 * k) & 63] : '=', page);
        }
        fputs("\">", page);
    }
    fputs("<figcaption>", page);
    html_text(page, words);
    fputs("</figcaption></figure>\n", page);
}

/* Escape data inside a script element, where nothing may look like markup. */
static int write_data(FILE *page, const json_t *data)
{
    char *text = json_to_text(data, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));

    if (!text)
        return -ENOMEM;
    for (const char *at = text; *at; at++) {
        if (strchr("<>&", *at))
            fprintf(page, "\\u%04x", *at);
        else
            fputc(*at, page);
    }
    free(text);
    return 0;
}

int html_write(FILE *page, const char *title, const char *words,
               const char *const sections[HTML_SECTIONS], const json_t *data)
{
    char nonce[2 * NONCE_BYTES + 1];
    const struct {
        const char *name, *text;
        bool is_outside; /* external text, to be escaped */
    } parts[] = {{"version", PACKAGE_VERSION, false},
                 {"nonce", nonce, false},
                 {"title", title, true},
                 {"words", words, false},
                 {"library-style", (const char *)html_library_style, false},
                 {"style", (const char *)html_style, false},
                 {"time", sections[HTML_TIME], false},
                 {"scaling", sections[HTML_SCALING], false},
                 {"latency", sections[HTML_LATENCY], false},
                 {"shuffle", sections[HTML_SHUFFLE], false},
                 {"others", sections[HTML_OTHERS], false},
                 {"library", (const char *)html_library, false},
                 {"program", (const char *)html_program, false},
                 {"data", NULL, false}};
    unsigned char bytes[NONCE_BYTES];
    int code = 0;

    /* With a nonce only this page's scripts and styles run, even if external text became markup. */
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return fail(errno, "no random bytes: %s", fail_errno_text(errno));
    for (int i = 0; i < NONCE_BYTES; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    for (const char *at = (const char *)html_template; *at && code == 0;) {
        const size_t length = strcspn(at, "@");
        fwrite(at, 1, length, page);
        at += length;
        if (strncmp(at, "@{", 2) != 0) { /* "@media" */
            at += *at ? (fputc(*at, page), 1) : 0;
            continue;
        }
        const size_t name = strcspn(at + 2, "}");
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (strlen(parts[i].name) != name || strncmp(parts[i].name, at + 2, name) != 0)
                continue;
            if (strcmp(parts[i].name, "data") == 0)
                code = write_data(page, data);
            else if (parts[i].is_outside)
                html_text(page, parts[i].text);
            else if (parts[i].text)
                fputs(parts[i].text, page);
        }
        at += 2 + name + 1;
    }
    return code;
}
