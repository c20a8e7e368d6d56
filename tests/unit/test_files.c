/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "dataset/manifest.h"
#include "formats/format.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static struct plugin_choice files;

static int setup(void **unused)
{
    if (plugin_choose("format", format_registry, "files", &files))
        return -1;
    return folder_setup(unused);
}

static int teardown(void **unused)
{
    plugin_release(&files);
    return folder_teardown(unused);
}

static void make(const char *folder, const char *name)
{
    char path[128];

    assert_int_equal(folder_make_path(folder_path(folder)), 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    folder_write(path, name, strlen(name));
}

static struct catalog *index_of(const char *name)
{
    struct catalog *catalog = NULL;

    if (format_catalog(&files, folder_path(name), false, NULL, &catalog))
        fail_msg("%s", fail_reason());
    return catalog;
}

static void expect(const struct catalog *catalog, uint64_t record, const char *name, int32_t label)
{
    const struct extent *extent = catalog_extent(catalog, record);
    const struct shard *shard = &catalog->shards[extent->shard];
    struct sample sample;

    assert_int_equal(extent->shard, record);
    assert_int_equal(extent->offset, 0);
    assert_int_equal(extent->bytes, shard->bytes);
    assert_int_equal(format_parse(&files, shard, "bytes", 5, 0, NULL, &sample), 0);
    assert_int_equal(sample.label, label);
    assert_int_equal(sample.image_bytes, 5);
    assert_int_equal(sample.name_bytes, strlen(name));
    assert_memory_equal(sample.name, name, sample.name_bytes);
    assert_refused(format_parse(&files, shard, "", 0, 0, NULL, &sample), -EBADMSG, "an empty file");
}

static void folders_are_classes(void **unused)
{
    make("set/n02", "b.JPEG");
    make("set/n02", "a.jpg");
    make("set/n01", "z.png");
    make("set/n01/deeper/still", "y.jpeg");
    make("set/n01", "notes.txt");
    make("set/empty", ".hidden.jpg");
    make("set", "README");
    struct catalog *catalog = index_of("set");
    assert_int_equal(catalog->remarks[REMARK_EMPTY_CLASS].count, 1); /* no class */
    assert_non_null(strstr(catalog->remarks[REMARK_EMPTY_CLASS].first, "set/empty"));
    assert_int_equal(catalog->record_count, 4);
    assert_int_equal(catalog->left_out, 2);
    expect(catalog, 0, "n01/z.png", 0);
    expect(catalog, 1, "still/y.jpeg", 0);
    expect(catalog, 2, "n02/a.jpg", 1);
    expect(catalog, 3, "n02/b.JPEG", 1);
    catalog_destroy(catalog);
    assert_ptr_equal(format_detect(folder_path("set")), files.plugin);
}

static int count_fault(void *context, const struct catalog_fault *fault)
{
    ++*(unsigned *)context;
    return 0;
}

static void unread_samples_are_told(void **unused)
{
    unsigned faults = 0;
    const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
    struct catalog *catalog;

    make("mixed/a", "1.jpg");
    make("mixed/a", "2.AVIF");
    make("mixed/a", "3.webp");
    make("mixed/a", "notes.txt");
    make("mixed/b", "3.bmp");
    make("mixed/b", "4.gif");
    make("mixed/b/deeper", "5.tiff");
    assert_int_equal(symlink("nowhere", folder_path("mixed/b/6.png")), 0);
    assert_int_equal(symlink("../a", folder_path("mixed/b/linked")), 0);
    for (int round = 0; round < 2; round++) { /* not hidden by a sidecar */
        assert_int_equal(format_catalog(&files, folder_path("mixed"), true, NULL, &catalog), 0);
        assert_int_equal(catalog->record_count, 4);
        assert_int_equal(catalog->left_out, 1);
        assert_int_equal(catalog->remarks[REMARK_LEFT_OUT].count, 4);
        assert_non_null(strstr(catalog->remarks[REMARK_LEFT_OUT].first,
                               "a/2.AVIF: offset 0: unsupported kind of image"));
        catalog_destroy(catalog);
    }
    assert_int_equal(format_catalog(&files, folder_path("mixed"), false, &scan, &catalog), 0);
    assert_int_equal(faults, 4);
    assert_true(!catalog->fault); /* that of the scan is gone with it */
    catalog_destroy(catalog);
}

static void images_in_the_root_have_no_class(void **unused)
{
    make("flat", "1.jpg");
    make("flat", "2.jpg");
    struct catalog *catalog = index_of("flat");
    expect(catalog, 0, "flat/1.jpg", -1);
    expect(catalog, 1, "flat/2.jpg", -1);
    catalog_destroy(catalog);
    assert_ptr_equal(format_detect(folder_path("flat")), files.plugin);
}

/* A path may have fewer folders than that. */
static void names_are_file_and_folder(void **unused)
{
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"/data/n01/a.jpg", "n01/a.jpg"},
        {"/n01/a.jpg", "n01/a.jpg"},
        {"n01/a.jpg", "n01/a.jpg"},
        {"/a.jpg", "/a.jpg"},
        {"a.jpg", "a.jpg"},
        {"/n01//a.jpg", "/a.jpg"},
    };
    struct sample sample;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[32];
        snprintf(path, sizeof path, "%s", cases[i].path);
        const struct shard shard = {.path = path};
        assert_int_equal(format_parse(&files, &shard, "bytes", 5, 0, NULL, &sample), 0);
        assert_string_equal(sample.name, cases[i].name);
        assert_int_equal(sample.name_bytes, strlen(cases[i].name));
    }
}

static void the_sidecar_keeps_labels(void **unused)
{
    struct catalog *scanned, *loaded;

    make("kept/a", "1.jpg");
    make("kept/b", "2.jpg");
    make("kept/b", "x.txt");
    assert_int_equal(format_catalog(&files, folder_path("kept"), true, NULL, &scanned), 0);
    assert_true(file_exists(folder_path("kept/.iobench-index")));
    assert_int_equal(format_catalog(&files, folder_path("kept"), true, NULL, &loaded), 0);
    assert_non_null(loaded->mapping);
    assert_int_equal(loaded->shards[1].label, 1);
    assert_int_equal(loaded->left_out, 1);
    catalog_destroy(scanned);
    catalog_destroy(loaded);
}

static void links_are_followed_but_not_in_circles(void **unused)
{
    make("elsewhere/cats", "c.jpg");
    make("linked/b", "real.jpg");
    assert_int_equal(symlink("../elsewhere/cats", folder_path("linked/a")), 0);
    assert_int_equal(symlink("../../elsewhere/cats/c.jpg", folder_path("linked/b/link.jpg")), 0);
    assert_int_equal(symlink("nowhere.jpg", folder_path("linked/b/broken.jpg")), 0);
    assert_int_equal(symlink("..", folder_path("linked/b/up")), 0);
    assert_int_equal(symlink(".", folder_path("linked/round")), 0);
    struct catalog *catalog = index_of("linked");
    /* "round" is a class: the root again, in which "b" is found a second time but the links are
     * not. */
    assert_int_equal(catalog->record_count, 5);
    expect(catalog, 0, "a/c.jpg", 0);
    expect(catalog, 1, "b/link.jpg", 1);
    expect(catalog, 2, "b/real.jpg", 1);
    expect(catalog, 3, "b/link.jpg", 2);
    catalog_destroy(catalog);
}

static void what_is_wrong_is_said(void **unused)
{
    unsigned faults = 0;
    const struct format_scan scan = {.fault = count_fault, .fault_context = &faults};
    struct catalog *catalog;

    make("bad/a", "fine.jpg");
    folder_write("bad/a/empty.jpg", "", 0);
    assert_int_equal(format_catalog(&files, folder_path("bad"), false, NULL, &catalog), -EBADMSG);
    assert_reason("bad/a/empty.jpg");
    assert_int_equal(format_catalog(&files, folder_path("bad"), false, &scan, &catalog), 0);
    assert_int_equal(faults, 1);
    assert_int_equal(catalog->record_count, 1);
    catalog_destroy(catalog);
    assert_int_equal(format_catalog(&files, folder_path("not there"), false, NULL, &catalog),
                     -ENOENT);
    assert_int_equal(format_catalog(&files, folder_path("bad/a/fine.jpg"), false, NULL, &catalog),
                     -ENOTDIR);
    assert_int_equal(folder_make_path(folder_path("nothing/in/it")), 0);
    assert_int_equal(format_catalog(&files, folder_path("nothing"), false, NULL, &catalog),
                     -ENODATA);
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder_path("bad/a"), 0), 0);
        assert_refused(format_catalog(&files, folder_path("bad"), false, NULL, &catalog), -EACCES,
                       "bad/a");
        assert_int_equal(chmod(folder_path("bad/a"), 0700), 0);
    }
}

static void what_is_written_is_read(void **unused)
{
    struct format_writer writer;
    struct sample sample = {.image_bytes = 12};
    static const int32_t labels[] = {3, -1, 0, 3};
    static const char *const images[] = {"\xff\xd8\xff.........", "RIFF....WEBP",
                                         "\x89PNG\r\n\x1a\n....", "P6\n1 1\n255\n."};

    assert_int_equal(format_writer_open(&writer, &files, folder_path("made/")), 0);
    for (size_t i = 0; i < 4; i++) {
        sample.label = labels[i];
        sample.image = images[i];
        assert_int_equal(format_writer_append(&writer, &sample), 0);
    }
    assert_int_equal(format_writer_close(&writer, true), 0);
    /* No folder for classes 1 and 2, which torchvision would refuse. Pack's list says that names
     * are class numbers. */
    assert_false(file_exists(folder_path("made/00001")));
    struct catalog *catalog = index_of("made");
    expect(catalog, 2, "00003/00000000.jpg", 1);
    catalog_destroy(catalog);
    folder_write("made/" MANIFEST_SET, "iobench set 2", 13);
    catalog = index_of("made");
    assert_int_equal(catalog->record_count, 4);
    expect(catalog, 0, "made/00000001.webp", -1);
    expect(catalog, 1, "00000/00000002.png", 0);
    expect(catalog, 2, "00003/00000000.jpg", 3);
    expect(catalog, 3, "00003/00000003.ppm", 3);
    catalog_destroy(catalog);
    /* A non-empty folder is not overwritten. */
    assert_int_equal(format_writer_open(&writer, &files, folder_path("made")), -ENOTEMPTY);
    assert_int_equal(format_writer_close(&writer, false), 0);
    assert_true(file_exists(folder_path("made/00003/00000003.ppm")));
    /* Abandoned: nothing remains. Raw pixels and unlimited classes are refused. */
    assert_int_equal(format_writer_open(&writer, &files, folder_path("gone")), 0);
    sample.label = 100000;
    assert_int_equal(format_writer_append(&writer, &sample), -EINVAL);
    sample.label = 1;
    sample.encoding = SAMPLE_RAW_HWC;
    assert_int_equal(format_writer_append(&writer, &sample), -EINVAL);
    assert_int_equal(format_writer_close(&writer, false), 0);
    assert_false(file_exists(folder_path("gone")));
}

static void other_kinds_are_named(void **unused)
{
    static const char beton[32] = "\2\0\2\0\0\0\x80\0\5\0\0\0\0\0\0\0\0\0\x80";
    static char matlab[520] = "MATLAB 7.3 MAT-file";
    static const struct {
        const char *file, *start, *kind;
        size_t bytes;
    } kinds[] = {
        {"parquet/data/train-00000-of-00001", "PAR1....", "Parquet", 8},
        {"arrow/data.arrow", "ARROW1..", "Arrow", 8},
        {"hdf5/x.h5", "\x89HDF\r\n\x1a\n", "HDF5", 8},
        {"npz/case_00.npz", "PK\3\4", "npz", 4},
        {"npy/0.npy", "\x93NUMPY\1\0", "npy", 8},
        {"array/train.array_record", "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "ArrayRecord", 8},
        {"ffcv/train.beton", beton, ".beton", sizeof beton},
        {"stream/data-00000-of-00001", "\xff\xff\xff\xff\x78\1\0\0\x10\0\0\0\0\0\x0a\0",
         "Arrow stream", 16},
        {"pickles/data_batch_1", "\x80\2}q\1", "pickled Python object", 5},
        {"matlab/v73.mat", matlab, "HDF5", sizeof matlab},
    };

    memcpy(matlab + 512, "\x89HDF\r\n\x1a\n", 8);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(kinds[i].file, '/') - kinds[i].file),
                 kinds[i].file);
        assert_int_equal(folder_make_path(folder_path(folder)), 0);
        folder_write(kinds[i].file, kinds[i].start, kinds[i].bytes);
        folder[strcspn(folder, "/")] = '\0';
        assert_null(format_detect(folder_path(kinds[i].file)));
        assert_reason(kinds[i].kind);
        assert_null(format_detect(folder_path(folder)));
        assert_reason(kinds[i].kind);
        assert_reason(kinds[i].file);
        assert_reason(strcmp(kinds[i].kind, "npz") == 0
                          ? "if built with libarchive (libarchive-dev)"
                          : "which iobench does not read; ");
    }
    /* One file, of which only pack may know what is in it. */
    folder_write("photos.tar.gz", "\x1f\x8b\x08\0\0\0\0\0", 8);
    assert_null(format_detect(folder_path("photos.tar.gz")));
    assert_reason("if built with libarchive (libarchive-dev)");
    /* Images beside a table of labels are a data set of images. */
    make("both/cats", "1.jpg");
    folder_write("both/labels.npz", "PK\3\4", 4);
    assert_ptr_equal(format_detect(folder_path("both")), files.plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_classes),
        cmocka_unit_test(unread_samples_are_told),
        cmocka_unit_test(images_in_the_root_have_no_class),
        cmocka_unit_test(names_are_file_and_folder),
        cmocka_unit_test(the_sidecar_keeps_labels),
        cmocka_unit_test(links_are_followed_but_not_in_circles),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(other_kinds_are_named),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
