/* SPDX-License-Identifier: Apache-2.0 */
#include "report/browser.h"

#include "base/child.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 256 << 20, LOOK_HEIGHT = 900, NOT_FOUND = 127 /* of env(1) */ };

static const uint64_t time_limit_ns = UINT64_C(120000000000);

static const struct {
    const char *option, *name, *begin;
} kinds[] = {
    [BROWSER_PNG] = {"--screenshot", "out.png", "\x89PNG"},
    [BROWSER_PDF] = {"--print-to-pdf", "out.pdf", "%PDF"},
};

/* A browser in a folder that holds its page, its profile and what it draws. */
struct browser {
    char folder[64];
    char home[96], temporary[96], config[96], cache[96], profile[128], page[128];
};

/* ---- the folder ---- */

static int make_folder(struct browser *browser)
{
    struct folder place;
    uint64_t number;
    char name[48];

    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return fail(errno, "no random bytes: %s", fail_errno_text(errno));
    snprintf(name, sizeof name, "iobench-page-%d-%016" PRIx64, (int)getpid(), number);
    int code = folder_open(&place, "/tmp");
    if (code == 0)
        code = folder_make(&place, name);
    folder_close(&place);
    if (code == 0)
        snprintf(browser->folder, sizeof browser->folder, "/tmp/%s", name);
    return code;
}

/* Chromium leaves links and sockets, which folder_remove_tree() would refuse. */
static void remove_folder(const struct browser *browser)
{
    const char *const argv[] = {"rm", "-rf", "--", browser->folder, NULL};
    const struct child_task task = {.argv = argv};
    struct child_result result;

    if (*browser->folder)
        child_run(&task, &result);
}

static void name_files(struct browser *browser)
{
    const char *folder = browser->folder;

    snprintf(browser->home, sizeof browser->home, "HOME=%s", folder);
    snprintf(browser->temporary, sizeof browser->temporary, "TMPDIR=%s", folder);
    snprintf(browser->config, sizeof browser->config, "XDG_CONFIG_HOME=%s", folder);
    snprintf(browser->cache, sizeof browser->cache, "XDG_CACHE_HOME=%s", folder);
    snprintf(browser->profile, sizeof browser->profile, "--user-data-dir=%s/profile", folder);
    snprintf(browser->page, sizeof browser->page, "file://%s/page.html", folder);
}

/* ---- the program ---- */

/* Run the browser once. option: what to do with the page. output: a descriptor, or 0. */
static int run(struct browser *browser, const char *option, unsigned height, int output,
               struct child_result *result)
{
    static const char *const programs[] = {"chromium", "chromium-browser", "google-chrome",
                                           "chrome"};
    char window[64];
    const char *argv[] = {"env",
                          browser->home,
                          browser->temporary,
                          browser->config,
                          browser->cache,
                          NULL, /* the program */
                          "--headless",
                          "--disable-gpu",
                          "--disable-dev-shm-usage",
                          "--hide-scrollbars",
                          "--no-first-run",
                          "--disable-background-networking",
                          "--host-resolver-rules=MAP * ~NOTFOUND",
                          "--no-pdf-header-footer",
                          browser->profile,
                          window,
                          option,
                          browser->page,
                          geteuid() == 0 ? "--no-sandbox" : NULL, /* it refuses to run as root */
                          NULL};
    const struct child_task task = {.argv = argv, .output = output, .timeout_ns = time_limit_ns};
    int code = 0;

    snprintf(window, sizeof window, "--window-size=%d,%u", BROWSER_WIDTH, height);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        argv[5] = programs[i];
        code = child_run(&task, result);
        if (code || result->status != NOT_FOUND)
            return code;
    }
    return fail(ENOENT, "PNG and PDF need Chromium, which is not installed: apt-get install "
                        "chromium, or write .html and print it from a browser");
}

/* page.js writes the height of the page into it: a screenshot is of the window. */
static int measure(struct browser *browser, unsigned *height)
{
    static const char mark[] = "data-height=\"";
    const int file = memfd_create("page", MFD_CLOEXEC);
    struct child_result result;
    char head[4096] = "";

    if (file < 0)
        return fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno));
    int code = run(browser, "--dump-dom", LOOK_HEIGHT, file, &result);
    if (code == 0 && pread(file, head, sizeof head - 1, 0) < 0)
        code = fail(errno, "cannot read what Chromium wrote: %s", fail_errno_text(errno));
    close(file);
    const char *at = strstr(head, mark);
    *height = at ? (unsigned)strtoul(at + sizeof mark - 1, NULL, 10) : 0;
    if (code == 0 && *height == 0)
        code = fail(EIO, "Chromium did not show the page: exit status %d: %s", result.status,
                    result.output);
    return code;
}

static int draw(struct browser *browser, enum browser_kind kind, unsigned height, char **file,
                size_t *bytes)
{
    char option[160], path[128];
    struct child_result result;

    snprintf(path, sizeof path, "%s/%s", browser->folder, kinds[kind].name);
    snprintf(option, sizeof option, "%s=%s", kinds[kind].option, path);
    int code = run(browser, option, height, 0, &result);
    if (code == 0 && file_load(path, FILE_BYTES_MAX, file, bytes))
        code = fail(EIO, "Chromium drew nothing: exit status %d: %s", result.status, result.output);
    if (code == 0 && strncmp(*file, kinds[kind].begin, strlen(kinds[kind].begin)) != 0) {
        free(*file);
        *file = NULL;
        code = fail(EIO, "Chromium did not write the kind of file that was asked for");
    }
    return code;
}

int browser_draw(int (*make_page)(void *context, const char *path), void *context,
                 enum browser_kind kind, char **file, size_t *file_bytes, unsigned *cut)
{
    struct browser browser = {0};
    unsigned height = LOOK_HEIGHT;
    char path[128];
    int code = make_folder(&browser);

    *file = NULL;
    *cut = 0;
    name_files(&browser);
    snprintf(path, sizeof path, "%s/page.html", browser.folder);
    if (code == 0)
        code = make_page(context, path);
    if (code == 0 && kind == BROWSER_PNG)
        code = measure(&browser, &height);
    if (height > BROWSER_HEIGHT_MAX) {
        *cut = height - BROWSER_HEIGHT_MAX;
        height = BROWSER_HEIGHT_MAX;
    }
    if (code == 0)
        code = draw(&browser, kind, height, file, file_bytes);
    remove_folder(&browser);
    return code;
}
