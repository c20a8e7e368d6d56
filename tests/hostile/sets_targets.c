/* SPDX-License-Identifier: Apache-2.0
 * Files and links of the user or of an attacker in the way of output.
 */
#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <unistd.h>

#define SOURCE "synthetic:count=20,mean=4k,classes=2"

#define PACKED(TARGET, FORMAT) CALL(pack_base), .path = (TARGET), .with = (FORMAT)

static void pack_base(const struct hostile_act *act)
{
    char words[256];

    snprintf(words, sizeof words, "pack " SOURCE " %s -f %s", act->path, (const char *)act->with);
    run_program(words);
}

static void foreign_shards(void)
{
    struct blob blob = {0};

    /* A data set written by another program. */
    put_folder("x");
    add_example(&blob, 0, 1);
    blob_save(&blob, "x/mine-00000-of-00001");
}

static void half_tar(void)
{
    run_program("pack " SOURCE " x -f tar");
    unlink("x/.iobench-set"); /* claims that all shards exist */
    put_text("x/.iobench-unfinished", "iobench pack 1, plan 0000000000000000\n");
}

#define READ "-n 1 --no-calibrate -m 8m -d @/x "

/* A set, a result, and a letter: an output path given by mistake. */
static void a_letter(void)
{
    run_program("pack " SOURCE " x -f shards");
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
    SET("pack-partial-folder", "TARGET.partial is a folder of the user", NULL, EITHER, 0, KIND_OWN,
        NULL, "pack " SOURCE " @/x -f files", "x",
        .acts = {{FOLDER("x.partial")}, {TEXT("x.partial/thesis", "the only copy\n")}}),
    SET("pack-partial-link", "TARGET.partial is a link to letters of the user", NULL, EITHER, 0,
        KIND_OWN, NULL, "pack " SOURCE " @/x -f files", "x",
        .acts = {{LINK("../sentinel/letters", "x.partial")}}),
    SET("pack-shard-link", "train.rec.partial is a link", NULL, EITHER, 0, KIND_OWN, NULL,
        PACK "recordio", "x", "x/train.rec.partial",
        .acts = {{FOLDER("x")}, {LINK("../../sentinel/thesis", "x/train.rec.partial")}}),
    SET("pack-shard-link-beside", "train.rec.partial is a link in a set", NULL, EITHER, 0, KIND_OWN,
        NULL, PACK "recordio", "x", "x/train.rec.partial",
        .acts = {{PACKED("x", "recordio")},
                 {LINK("../../sentinel/thesis", "x/train.rec.partial")}}),
    SET("pack-shard-file", "train.rec.partial is a file of the user", NULL, EITHER, 0, KIND_OWN,
        NULL, PACK "recordio", "x", "x/train.rec.partial",
        .acts = {{PACKED("x", "recordio")}, {TEXT("x/train.rec.partial", "a file of the user\n")}}),
    SET("pack-linked-class", "a class is a link to letters of the user", NULL, EITHER, 0, KIND_OWN,
        NULL, PACK "files", "x",
        .acts = {{PACKED("x", "files")}, {LINK("../../sentinel/letters", "x/zebra")}}),
    SET("pack-linked-images", "a class is a link to originals", NULL, EITHER, 0, KIND_OWN, NULL,
        PACK "files", "x",
        .acts = {{PACKED("x", "files")},
                 {PACKED("originals", "files")},
                 {LINK("../originals/0000", "x/zebra")}}),
    SET("pack-foreign", "a file of the user in the target", NULL, EITHER, 0, KIND_OWN, NULL,
        PACK "tar", "x", "x/thesis",
        .acts = {{PACKED("x", "shards")}, {TEXT("x/thesis", "the only copy\n")}}),
    SET("pack-not-ours", "a data set of somebody else", foreign_shards, REFUSED, 0, KIND_OWN, NULL,
        PACK "shards", NULL),
    SET("pack-target-link", "the target is a link to letters of the user", NULL, EITHER, 0,
        KIND_OWN, NULL, PACK "files", NULL, .acts = {{LINK("../sentinel/letters", "x")}}),
    SET("pack-manifest-link", "the manifest is a link", NULL, EITHER, 0, KIND_OWN, NULL,
        PACK "shards", "x",
        .acts = {{FOLDER("x")}, {LINK("../../sentinel/thesis", "x/.iobench-unfinished")}}),
    SET("pack-manifest-planted", "the manifest is another's", NULL, REFUSED, 0, KIND_OWN, NULL,
        PACK "shards", "x", "x/thesis",
        .acts = {{FOLDER("x")},
                 {TEXT("x/.iobench-unfinished",
                       "iobench pack 1, plan 0000000000000000\nshard 0 1 1\n")},
                 {TEXT("x/thesis", "the only copy\n")}}),
    SET("pack-manifest-fifo", "the manifest is a FIFO", NULL, EITHER, 0, KIND_OWN, NULL,
        "pack " SOURCE " @/x", "x", .acts = {{FOLDER("x")}, {FIFO("x/.iobench-unfinished")}}),
    SET("json-partial-file", "RESULT.partial is a file of the user", NULL, FINE, 0, KIND_OWN, NULL,
        RUN_JSON, "r.json",
        .acts = {{PACKED("x", "shards")}, {TEXT("r.json.partial", "a file of the user\n")}}),
    SET("json-partial-link", "RESULT.partial is a link", NULL, FINE, 0, KIND_OWN, NULL, RUN_JSON,
        "r.json",
        .acts = {{PACKED("x", "shards")}, {LINK("../sentinel/thesis", "r.json.partial")}}),
    SET("json-fifo", "the result is a FIFO", NULL, EITHER, 0, KIND_OWN, NULL, RUN_JSON, "r.json",
        .acts = {{PACKED("x", "shards")}, {FIFO("r.json")}}),
    SET("json-folder", "the result is a folder", NULL, REFUSED, 0, KIND_OWN, NULL, RUN_JSON, NULL,
        .acts = {{PACKED("x", "shards")}, {FOLDER("r.json")}}),
    SET("half-verify", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL, "verify @/x",
        NULL),
    SET("half-run", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL,
        "run -n 1 --no-calibrate -m 8m -d @/x", NULL),
    SET("half-pack", "an unfinished set", half_tar, REFUSED, 0, KIND_OWN, NULL, "pack @/x %/set",
        NULL),
    SET("half-inspect", "an unfinished set", half_tar, EITHER, 0, KIND_OWN, NULL, "inspect @/x",
        NULL),
    SET("monitor-no-child", "SIGCHLD is inherited as ignored", NULL, FINE, CLOSED, KIND_OWN, NULL,
        "monitor -i 20ms --sample-interval 10ms @ -- true", NULL,
        .acts = {{PACKED("x", "shards")}}),
    SET("plot-no-child", "SIGCHLD is inherited as ignored", NULL, EITHER, CLOSED, KIND_OWN, NULL,
        "plot -o %/x.svg @/x", NULL, .acts = {{PACKED("x", "shards")}}),
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
