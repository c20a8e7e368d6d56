/* SPDX-License-Identifier: Apache-2.0
 *
 * tar: headers that lie about sizes, names that leave the archive, members that are not files; and
 * archives that only pack reads.
 */
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAR "train-000000.tar"

enum { SAME_NAMES = 500 };

static void add_two(struct blob *blob)
{
    add_tar_image(blob, "0001.jpg", 0);
    add_member(blob, "0001.cls", '0', 1);
    blob_fill(blob, '3', 1);
    blob_fill(blob, 0, 511);
    add_tar_image(blob, "0002.jpg", 1);
}

static void end_and_save(struct blob *blob)
{
    add_tar_end(blob);
    blob_save(blob, TAR);
}

/* Two good samples, then a header of a type with bytes replaced and a corrected checksum. */
static void save_with(const struct hostile_act *act)
{
    struct blob blob = {0};

    add_two(&blob);
    const size_t at = blob.count;
    add_member(&blob, "0003.jpg", *(const char *)act->with, 0);
    memcpy(blob.bytes + at + act->number, act->bytes, act->count);
    tar_checksum(blob.bytes + at);
    end_and_save(&blob);
}

static void tar_zeros(void)
{
    struct blob blob = {0};

    end_and_save(&blob);
}

static void tar_cut(void)
{
    struct blob blob = {0};

    add_two(&blob);
    blob.count -= 2000;
    blob_save(&blob, TAR);
}

static void tar_checksum_wrong(void)
{
    struct blob blob = {0};

    add_two(&blob);
    blob.bytes[0] ^= 1;
    end_and_save(&blob);
}

static void add_pax(struct blob *blob, const char *text, size_t count)
{
    add_member(blob, "pax", 'x', count);
    blob_add(blob, text, count);
    blob_fill(blob, 0, (512 - count % 512) % 512);
}

static void save_pax(const struct hostile_act *act)
{
    struct blob blob = {0};

    add_two(&blob);
    add_pax(&blob, act->bytes, act->count);
    add_tar_image(&blob, "0003.jpg", 2);
    end_and_save(&blob);
}

static void pax_many(void)
{
    struct blob blob = {0}, text = {0};

    for (int i = 0; i < 40000; i++)
        blob_text(&text, "9 aaaa=b\n");
    add_two(&blob);
    for (int i = 0; i < 4; i++)
        add_pax(&blob, (char *)text.bytes, text.count);
    add_tar_image(&blob, "0003.jpg", 2);
    free(text.bytes);
    end_and_save(&blob);
}

static void tar_long_name(void)
{
    struct blob blob = {0};

    add_two(&blob);
    add_member(&blob, "././@LongLink", 'L', UINT64_C(1) << 30);
    blob_fill(&blob, 'a', 4096);
    end_and_save(&blob);
}

static void tar_only_long_names(void)
{
    struct blob blob = {0};

    for (int i = 0; i < 500; i++) {
        add_member(&blob, "././@LongLink", 'L', 512);
        blob_fill(&blob, 'a', 511);
        blob_fill(&blob, 0, 1);
    }
    end_and_save(&blob);
}

static void tar_outside(void)
{
    struct blob blob = {0};

    add_tar_image(&blob, "../../sentinel/thesis.jpg", 0);
    add_tar_image(&blob, "../../../../../../../../etc/iobench-hostile.jpg", 1);
    add_tar_image(&blob, "a/../../b/x.jpg", 2);
    end_and_save(&blob);
}

static void tar_absolute(void)
{
    struct blob blob = {0};

    add_tar_image(&blob, "/etc/iobench-hostile.jpg", 0);
    add_tar_image(&blob, "//etc//iobench-hostile.png", 1);
    end_and_save(&blob);
}

static void tar_members(void)
{
    struct blob blob = {0};

    add_two(&blob);
    for (const char *type = "1234567DMVg"; *type; type++)
        add_member(&blob, "0003.jpg", *type, 0);
    end_and_save(&blob);
}

static void tar_no_image(void)
{
    struct blob blob = {0};

    for (int i = 0; i < 20; i++)
        add_member(&blob, "0001.jpg", i % 2 ? '2' : '6', 0);
    end_and_save(&blob);
}

static void tar_same_names(void)
{
    struct blob blob = {0};

    for (int i = 0; i < SAME_NAMES; i++)
        add_member(&blob, "0001.jpg", '0', 0);
    end_and_save(&blob);
}

static void tar_labels(void)
{
    struct blob blob = {0};
    static const char *const labels[] = {"99999999999999999999", "-1", "\x1b[2J", "1e9", ""};

    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "%04d.jpg", i);
        add_tar_image(&blob, name, (uint64_t)i);
        snprintf(name, sizeof name, "%04d.cls", i);
        add_member(&blob, name, '0', strlen(labels[i]));
        blob_text(&blob, labels[i]);
        blob_fill(&blob, 0, (512 - strlen(labels[i])) % 512);
    }
    end_and_save(&blob);
}

static void tar_escapes(void)
{
    struct blob blob = {0};

    add_tar_image(&blob, "\x1b]0;title\a\x1b[31m.jpg", 0);
    add_tar_image(&blob,
                  "\x9b"
                  "31mred\n\r\b.jpg",
                  1);
    add_tar_image(&blob, "%s%n%s%n.jpg", 2);
    add_tar_image(&blob, "\xff\xfe\xfd.jpg", 3);
    add_member(&blob, "\x1b[31m\n.cls", '0', 1);
    blob_fill(&blob, 'x', 512);
    end_and_save(&blob);
}

/* ---- archives for pack only ---- */

static void save_classes(const struct hostile_act *act)
{
    struct blob blob = {0};
    char name[64];

    for (uint64_t i = 0; i < act->number; i++) {
        snprintf(name, sizeof name, "class%07u/x.jpg", (unsigned)(act->number - i));
        add_member(&blob, name, '0', 3);
        blob_text(&blob, "\xff\xd8\xff");
        blob_fill(&blob, 0, 509);
    }
    add_tar_end(&blob);
    blob_save(&blob, "classes.tar");
}

/* A doubly nested archive. */
static void nested(void)
{
    struct blob inner = {0}, outer = {0};

    add_tar_image(&inner, "x.jpg", 0);
    add_tar_end(&inner);
    for (int i = 0; i < 40; i++) {
        outer = (struct blob){0};
        add_member(&outer, "inner.tar", '0', inner.count);
        blob_add(&outer, inner.bytes, inner.count);
        add_tar_end(&outer);
        free(inner.bytes);
        inner = outer;
    }
    blob_save(&outer, "nested.tar");
}

const struct hostile_set hostile_tar[] = {
    SET("tar-empty", "0 bytes", NULL, REFUSED, .acts = {{TEXT(TAR, "")}}),
    SET("tar-zeros", "an end and nothing before it", tar_zeros, REFUSED),
    SET("tar-cut", "cut inside an image", tar_cut, DAMAGED),
    SET("tar-checksum", "a header with a wrong checksum", tar_checksum_wrong, EITHER),
    SET("tar-octal-huge", "a size of 8 GiB", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_with, 124), .with = "0", BYTES("77777777777\0")}}),
    SET("tar-octal-garbage", "a size that is no number", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_with, 124), .with = "0", BYTES("9z\x1b[31m x-1\0")}}),
    SET("tar-base256-negative", "a size below 0", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_with, 124), .with = "0",
                  BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}}),
    SET("tar-base256-huge", "a size of 2^63 - 1", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_with, 124), .with = "0",
                  BYTES("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff")}}),
    SET("tar-base256-wide", "a size of more than 64 bits", NULL, DAMAGED,
        .acts = {{CALL_WITH(save_with, 124), .with = "0",
                  BYTES("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\x00")}}),
    SET("tar-sparse", "a sparse member of 8 GiB", NULL, EITHER,
        .acts = {{CALL_WITH(save_with, 386), .with = "S", BYTES("00000000000\00077777777777")}}),
    SET("pax-size", "pax: a size of 2^63 - 1", NULL, DAMAGED,
        .acts = {{CALL(save_pax), BYTES("28 size=9223372036854775807\n")}}),
    SET("pax-length", "pax: a line longer than its block", NULL, EITHER,
        .acts = {{CALL(save_pax), BYTES("99999999999999999999 path=x\n")}}),
    SET("pax-short", "pax: lines shorter than themselves", NULL, EITHER,
        .acts = {{CALL(save_pax), BYTES("3 path=0003.jpg\n0 =\n-5 size=1\n")}}),
    SET("pax-path", "pax: a path outside", NULL, EITHER,
        .acts = {{CALL(save_pax), BYTES("31 path=../sentinel/thesis.jpg\n")}}),
    SET("pax-sparse", "pax: a sparse file of GNU", NULL, EITHER,
        .acts = {{CALL(save_pax),
                  BYTES("22 GNU.sparse.major=1\n31 GNU.sparse.realsize=99999999\n")}}),
    SET("pax-many", "pax: 160,000 records before one file", pax_many, EITHER),
    SET("tar-long-name", "a name of 1 GiB", tar_long_name, DAMAGED),
    SET("tar-only-names", "500 long names without a file", tar_only_long_names, REFUSED),
    SET("tar-outside", "names with ../", tar_outside, EITHER),
    SET("tar-absolute", "absolute names", tar_absolute, EITHER),
    SET("tar-members", "links, FIFOs, devices", tar_members, EITHER),
    SET("tar-no-image", "nothing but links and FIFOs", tar_no_image, REFUSED),
    SET("tar-same-names", "500 members of one name and 0 bytes", tar_same_names, EITHER),
    SET("tar-labels", "labels that are no numbers", tar_labels, EITHER),
    SET("tar-escapes", "names that command a terminal", tar_escapes, EITHER),
    SET("archive-classes", "an archive of 2,000 classes", NULL, EITHER, .kind = KIND_OWN,
        .operand = "classes.tar", .command = "pack --from archive --on-error skip @ %/set",
        .acts = {{CALL_WITH(save_classes, 2000)}}),
    SET("archive-classes-long", "an archive of 80,000 classes", NULL, EITHER, .flags = LONG_RUN,
        .kind = KIND_OWN, .operand = "classes.tar",
        .command = "pack --from archive --on-error skip @ %/set",
        .acts = {{CALL_WITH(save_classes, 80000)}}),
    SET("archive-nested", "an archive in 40 archives", nested, EITHER, .kind = KIND_OWN,
        .operand = "nested.tar", .command = "pack @ %/set"),
    SET("archive-zip", "a zip that is cut, of 2 GiB, with ../", NULL, REFUSED, .kind = KIND_OWN,
        .operand = "a.zip", .command = "pack --from archive @ %/set",
        .acts = {{TEXT(
            "a.zip",
            "PK\3\4\x14\0\0\0\x08\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\x7f"
            "\x08\0\xff\xff../x.jpg")}}),
    {0},
};
