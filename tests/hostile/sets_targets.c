/* SPDX-License-Identifier: Apache-2.0
 * Files and links of the user or of an attacker in the way of output.
 */
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE "synthetic:count=20,mean=4k,classes=2"

static void pack_base(const char *target, const char *format)
{
    char words[256];

    snprintf(words, sizeof words, "pack " SOURCE " %s -f %s", target, format);
    run_program(words);
}

static void partial_folder(void)
{
    put_folder("x.partial");
    put_text("x.partial/thesis", "the only copy\n");
}

static void partial_link(void)
{
    put_link("../sentinel/letters", "x.partial");
}

static void partial_shard_link(void)
{
    put_folder("x");
    put_link("../../sentinel/thesis", "x/train.rec.partial");
}

static void partial_shard_link_made(void)
{
    pack_base("x", "recordio");
    put_link("../../sentinel/thesis", "x/train.rec.partial");
}

static void partial_shard_file(void)
{
    pack_base("x", "recordio");
    put_text("x/train.rec.partial", "a file of the user\n");
}

static void linked_class(void)
{
    pack_base("x", "files");
    put_link("../../sentinel/letters", "x/zebra");
}

static void linked_image_class(void)
{
    pack_base("x", "files");
    pack_base("originals", "files");
    put_link("../originals/0000", "x/zebra");
}

static void foreign_file(void)
{
    pack_base("x", "shards");
    put_text("x/thesis", "the only copy\n");
}

static void foreign_shards(void)
{
    struct blob blob = {0};

    /* A data set written by another program. */
    put_folder("x");
    add_example(&blob, 0, 1);
    blob_save(&blob, "x/mine-00000-of-00001");
}

static void linked_target(void)
{
    put_link("../sentinel/letters", "x");
}

static void linked_manifest(void)
{
    put_folder("x");
    put_link("../../sentinel/thesis", "x/.iobench-unfinished");
}

static void planted_manifest(void)
{
    put_folder("x");
    put_text("x/.iobench-unfinished", "iobench pack 1, plan 0000000000000000\nshard 0 1 1\n");
    put_text("x/thesis", "the only copy\n");
}

static void fifo_manifest(void)
{
    put_folder("x");
    put_fifo("x/.iobench-unfinished");
}

static void json_partial_file(void)
{
    pack_base("x", "shards");
    put_text("r.json.partial", "a file of the user\n");
}

static void json_partial_link(void)
{
    pack_base("x", "shards");
    put_link("../sentinel/thesis", "r.json.partial");
}

static void json_fifo(void)
{
    pack_base("x", "shards");
    put_fifo("r.json");
}

static void json_folder(void)
{
    pack_base("x", "shards");
    put_folder("r.json");
}

static void half_tar(void)
{
    pack_base("x", "tar");
    unlink("x/.iobench-set"); /* claims that all shards exist */
    put_text("x/.iobench-unfinished", "iobench pack 1, plan 0000000000000000\n");
}

static void a_set(void)
{
    pack_base("x", "shards");
}

#define READ "-n 1 --no-calibrate -m 8m -d @/x "

/* A set, a result, and a letter: an output path given by mistake. */
static void a_letter(void)
{
    pack_base("x", "shards");
    run_program("run -n 1 --no-calibrate -m 8m -d x --json r.json");
    put_text("letter", "Dear, this is the only copy\n");
    put_text("letter.svg", "Dear, this is the only copy\n");
    put_text("letter.png", "Dear, this is the only copy\n");
    put_text("page.html", "<!DOCTYPE html><p>by somebody else\n");
    put_text("package.json", "{\n  \"name\": \"of another program\"\n}\n");
    put_text("list.json", "[{\"name\": \"of another program\"}]\n");
    put_text("table.csv", "name,age\nAda,36\n");
    put_folder("learnt");
    put_text("learnt/last.checkpoint", "days of work\n");
}

#define LETTER(NAME, COMMAND)                                                                   \
    SET("letter-" NAME, "an output names a file that is no older output", a_letter, REFUSED, 0, \
        KIND_OWN, NULL, COMMAND, NULL)
#define TINY "-N lenet --backend reference -B 2 -t 1 -m 8m --limit-samples 2 -d @/x "

#define PACK "pack " SOURCE " @/x -f "
#define RUN_JSON "run -n 1 --no-calibrate -m 8m -d @/x --json @/r.json"

const struct hostile_set hostile_targets[] = {
    SET("pack-partial-folder", "TARGET.partial is a folder of the user", partial_folder, EITHER, 0,
        KIND_OWN, NULL, "pack " SOURCE " @/x -f files", "x"),
    SET("pack-partial-link", "TARGET.partial is a link to letters of the user", partial_link,
        EITHER, 0, KIND_OWN, NULL, "pack " SOURCE " @/x -f files", "x"),
    SET("pack-shard-link", "train.rec.partial is a link", partial_shard_link, EITHER, 0, KIND_OWN,
        NULL, PACK "recordio", "x", "x/train.rec.partial"),
    SET("pack-shard-link-beside", "train.rec.partial is a link in a set", partial_shard_link_made,
        EITHER, 0, KIND_OWN, NULL, PACK "recordio", "x", "x/train.rec.partial"),
    SET("pack-shard-file", "train.rec.partial is a file of the user", partial_shard_file, EITHER, 0,
        KIND_OWN, NULL, PACK "recordio", "x", "x/train.rec.partial"),
    SET("pack-linked-class", "a class is a link to letters of the user", linked_class, EITHER, 0,
        KIND_OWN, NULL, PACK "files", "x"),
    SET("pack-linked-images", "a class is a link to originals", linked_image_class, EITHER, 0,
        KIND_OWN, NULL, PACK "files", "x"),
    SET("pack-foreign", "a file of the user in the target", foreign_file, EITHER, 0, KIND_OWN, NULL,
        PACK "tar", "x", "x/thesis"),
    SET("pack-not-ours", "a data set of somebody else", foreign_shards, REFUSED, 0, KIND_OWN, NULL,
        PACK "shards", NULL),
    SET("pack-target-link", "the target is a link to letters of the user", linked_target, EITHER, 0,
        KIND_OWN, NULL, PACK "files", NULL),
    SET("pack-manifest-link", "the manifest is a link", linked_manifest, EITHER, 0, KIND_OWN, NULL,
        PACK "shards", "x"),
    SET("pack-manifest-planted", "the manifest is another's", planted_manifest, REFUSED, 0,
        KIND_OWN, NULL, PACK "shards", "x", "x/thesis"),
    SET("pack-manifest-fifo", "the manifest is a FIFO", fifo_manifest, EITHER, 0, KIND_OWN, NULL,
        "pack " SOURCE " @/x", "x"),
    SET("json-partial-file", "RESULT.partial is a file of the user", json_partial_file, FINE, 0,
        KIND_OWN, NULL, RUN_JSON, "r.json"),
    SET("json-partial-link", "RESULT.partial is a link", json_partial_link, FINE, 0, KIND_OWN, NULL,
        RUN_JSON, "r.json"),
    SET("json-fifo", "the result is a FIFO", json_fifo, EITHER, 0, KIND_OWN, NULL, RUN_JSON,
        "r.json"),
    SET("json-folder", "the result is a folder", json_folder, REFUSED, 0, KIND_OWN, NULL, RUN_JSON,
        NULL),
    SET("half-verify", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL, "verify @/x",
        NULL),
    SET("half-run", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL,
        "run -n 1 --no-calibrate -m 8m -d @/x", NULL),
    SET("half-pack", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL, "pack @/x %/set",
        NULL),
    SET("half-inspect", "an unfinished set", half_tar, EITHER, 0, KIND_OWN, NULL, "inspect @/x",
        NULL),
    SET("monitor-no-child", "SIGCHLD is inherited as ignored", a_set, FINE, CLOSED, KIND_OWN, NULL,
        "monitor -i 20ms --sample-interval 10ms @ -- true", NULL),
    SET("plot-no-child", "SIGCHLD is inherited as ignored", a_set, EITHER, CLOSED, KIND_OWN, NULL,
        "plot -o %/x.svg @/x", NULL),
    LETTER("json", "run " READ "--json @/letter"),
    LETTER("json-foreign", "run " READ "--json @/package.json"),
    LETTER("csv-foreign", "run " READ "--csv @/table.csv"),
    LETTER("series-foreign", "run " READ "--series @/table.csv"),
    LETTER("infer-foreign", "infer " TINY "--json @/package.json"),
    LETTER("shuffle-foreign", "shuffle -d @/x epoch -B 4 --json=@/list.json"),
    LETTER("monitor-foreign", "monitor -c 1 -i 20ms --sample-interval 10ms --json=@/package.json"),
    LETTER("size-foreign", "size --gpus 8 --gpu h200 --json=@/list.json"),
    LETTER("json-shard", "run " READ "--json @/x/train-00000-of-00001"),
    LETTER("csv", "run " READ "--csv @/letter"),
    LETTER("csv-result", "run " READ "--csv @/r.json"),
    LETTER("series", "run " READ "--series @/letter"),
    LETTER("train", "train " TINY "--json @/letter"),
    LETTER("checkpoint", "train " TINY "--checkpoint @/learnt"),
    LETTER("infer", "infer " TINY "--json @/letter"),
    LETTER("shuffle", "shuffle -d @/x epoch -B 4 --json=@/letter"),
    LETTER("shuffle-csv", "shuffle -d @/x epoch -B 4 --csv @/letter"),
    LETTER("shuffle-plot", "shuffle -d @/x epoch -B 4 --plot @/letter.svg"),
    LETTER("monitor", "monitor -c 1 -i 20ms --sample-interval 10ms --json=@/letter"),
    LETTER("compare", "compare @/r.json @/r.json --json=@/letter"),
    LETTER("compare-operand", "compare @/r.json @/r.json --json=@/r.json"),
    LETTER("size", "size --gpus 8 --gpu h200 --json=@/letter"),
    LETTER("size-operand", "size --gpus 8 --gpu h200 @/r.json --json=@/r.json"),
    LETTER("plot", "plot -o @/letter.svg @/r.json"),
    LETTER("plot-png", "plot -o @/letter.png @/r.json"),
    LETTER("report", "report -o @/page.html @/r.json"),
    {0},
};
