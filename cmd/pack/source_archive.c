/* SPDX-License-Identifier: Apache-2.0
 *
 * The archive source's front end; the source is in the module iobench-archive.so, as libarchive
 * brings libraries that few other sources need.
 */
#include "cmd/pack/plugins.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/plugin.h"
#include "base/random.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "formats/image_names.h"

static const struct module module_archive = {
    .file = "iobench-archive.so",
    .variable = "IOBENCH_ARCHIVE_MODULE",
    .libraries = {NULL},
    .remedy = "install libarchive",
};

/* Functions that the module calls: referenced here so that every program that can load the module
 * links them. */
typedef void (*any_function)(void);
__attribute__((used)) static const any_function for_the_module[] = {
    (any_function)fail,
    (any_function)file_join,
    (any_function)image_name_is_read,
    (any_function)memory_room,
    (any_function)names_number,
    (any_function)random_hash,
    (any_function)source_reserve,
    (any_function)store_open,
    (any_function)source_buffer_release,
    (any_function)format_settle_label,
    (any_function)sample_set_label_text,
    (any_function)tar_members_rank,
};

/* A tar is opened, by the module, to see what is in it. */
static int archive_detect(const char *path)
{
    static const char *const compressed[] = {".tar.gz",  ".tgz", ".tar.bz2", ".tar.xz", ".txz",
                                             ".tar.zst", ".zip", ".tar.lz4", NULL};

    for (int i = 0; compressed[i]; i++)
        if (image_name_ends(path, compressed[i]))
            return 100;
    if (!image_name_ends(path, ".tar") || store_is_folder(path))
        return 0;
    return source_detect_inside(&source_archive, path);
}

const struct source_ops source_archive = {
    .plugin = {.name = "archive",
               .summary = "a tar or zip of images, compressed or not, class by folder",
               .module = &module_archive,
               .symbol = "iobench_source_archive"},
    .detect = archive_detect,
};
