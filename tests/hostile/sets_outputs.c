/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files, job files and checkpoints from elsewhere.
 */
#include "tests/hostile/hostile.h"

#define FILE_NAME "file"

static void binary(void)
{
    struct blob blob = {0};

    for (unsigned i = 0; i < 4096; i++)
        blob_fill(&blob, (int)(i * 37 >> 3 & 0xff), 1);
    blob_save(&blob, FILE_NAME);
}

/* ---- results ---- */

static void json_deep(void)
{
    struct blob blob = {0};

    blob_fill(&blob, '[', 1 << 20);
    blob_save(&blob, FILE_NAME);
}

/* ---- job files ---- */

static void job_sections(void)
{
    struct blob blob = {0};

    for (int i = 0; i < 20000; i++)
        blob_text(&blob, "[job]\ndata=nowhere\n");
    blob_save(&blob, FILE_NAME);
}

static void job_line(void)
{
    struct blob blob = {0};

    blob_text(&blob, "[a]\ndata=");
    blob_fill(&blob, 'x', 1 << 20);
    blob_text(&blob, "\n");
    blob_save(&blob, FILE_NAME);
}

/* ---- checkpoints ---- */

static void checkpoint_head(void)
{
    struct blob blob = {0};

    put_jpeg("x.jpg", 0);
    blob_text(&blob, "IOBENCHK");
    blob_le32(&blob, 1);
    blob_fill(&blob, 0xff, 200);
    blob_save(&blob, FILE_NAME);
}

static void checkpoint_name(void)
{
    struct blob blob = {0};

    put_jpeg("x.jpg", 0);
    blob_text(&blob, "IOBENCHK");
    blob_le32(&blob, 1);
    blob_le32(&blob, 28);
    blob_le32(&blob, 10);
    blob_le32(&blob, 0);
    blob_fill(&blob, '\x1b', 64);
    blob_fill(&blob, 1, 4096);
    blob_save(&blob, FILE_NAME);
}

const struct hostile_set hostile_outputs[] = {
    SET("result-fifo", "a result is a FIFO", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{FIFO(FILE_NAME)}}),
    SET("result-folder", "a result is a folder", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{FOLDER(FILE_NAME)}}),
    SET("result-empty", "a result of 0 bytes", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "")}}),
    SET("result-missing", "a result is a dangling link", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{LINK("nowhere", FILE_NAME)}}),
    SET("result-binary", "a result of noise", binary, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-huge", "a result of 1 TiB", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{SPARSE(FILE_NAME, UINT64_C(1) << 40)}}),
    SET("result-deep", "JSON nested 1,048,576 deep", json_deep, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-numbers", "JSON with numbers out of range", NULL, REFUSED, 0, KIND_RESULT,
        FILE_NAME,
        .acts = {{TEXT(FILE_NAME,
                       "{\"schema\":1e999,\"jobs\":[{\"runs\":[{\"samples_per_second\":-1e308,"
                       "\"epochs\":[{\"seconds\":99999999999999999999999}]}]}]}")}}),
    SET("result-types", "JSON with other types", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{TEXT(FILE_NAME,
                       "{\"schema\":\"iobench\",\"version\":[],\"jobs\":{\"a\":1},\"runs\":\"x\","
                       "\"valid\":null,\"median\":{},\"samples_per_second\":true}")}}),
    SET("result-jobs", "JSON whose jobs are none", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "{\"schema\":1,\"program\":\"iobench\",\"jobs\":[null,[],{},1,"
                                  "\"x\",{\"runs\":[{}]}]}")}}),
    SET("result-escapes", "JSON whose labels command a terminal", NULL, EITHER, 0, KIND_RESULT,
        FILE_NAME,
        .acts = {{TEXT(
            FILE_NAME,
            "{\"schema\":1,\"label\":\"\\u001b[31mred\\u0007\\u009b\",\"jobs\":[{\"label\":"
            "\"\\u001b]0;x\\u0007\",\"runs\":[{\"samples_per_second\":1}]}]}")}}),
    SET("result-no-utf8", "JSON that is no UTF-8", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "{\"schema\":1,\"label\":\"\xff\xfe\x9b\",\"jobs\":[]}")}}),
    SET("result-cut", "JSON that is cut", NULL, REFUSED, 0, KIND_RESULT, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "{\"schema\":1,\"jobs\":[{\"runs\":[{\"samples_per_sec")}}),
    SET("job-fifo", "a job file is a FIFO", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{FIFO(FILE_NAME)}}),
    SET("job-folder", "a job file is a folder", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{FOLDER(FILE_NAME)}}),
    SET("job-empty", "a job file of 0 bytes", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "")}}),
    SET("job-binary", "a job file of noise", binary, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-huge", "a job file of 1 TiB", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{SPARSE(FILE_NAME, UINT64_C(1) << 40)}}),
    SET("job-sections", "a job file of 20,000 jobs", job_sections, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-line", "a job file with a line of 1 MiB", job_line, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-escapes", "a job file that commands a terminal", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "[\x1b[31m]\n\x1b]0;x\a=\x9b\ndata=\x1b[2J\n")}}),
    SET("job-options", "a job file with wrong options", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{TEXT(FILE_NAME,
                       "[a]\n=\n--=\niodepth=99999999999999999999\nbs=-1\nmemory=%s%n\n")}}),
    SET("job-command", "a job file that starts a program", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{TEXT(
            FILE_NAME,
            "[a]\ndata=.\ndrop-caches=yes\nserver-drop-cmd=touch ../sentinel/started\n")}}),
    SET("job-itself", "a job file that names itself", NULL, REFUSED, 0, KIND_JOB, FILE_NAME,
        .acts = {{TEXT(FILE_NAME, "[a]\nfile=" FILE_NAME "\ninclude=" FILE_NAME "\n")}}),
    SET("checkpoint-head", "a checkpoint of wrong numbers", checkpoint_head, EITHER, 0,
        KIND_CHECKPOINT, FILE_NAME),
    SET("checkpoint-name", "a checkpoint whose name commands a terminal", checkpoint_name, EITHER,
        0, KIND_CHECKPOINT, FILE_NAME),
    SET("checkpoint-huge", "a checkpoint of 1 TiB of zeros", NULL, EITHER, 0, KIND_CHECKPOINT,
        FILE_NAME, .acts = {{JPEG("x.jpg", 0)}, {SPARSE(FILE_NAME, UINT64_C(1) << 40)}}),
    SET("checkpoint-fifo", "a checkpoint is a FIFO", NULL, EITHER, 0, KIND_CHECKPOINT, FILE_NAME,
        .acts = {{JPEG("x.jpg", 0)}, {FIFO(FILE_NAME)}}),
    SET("checkpoint-folder", "the last checkpoint is a FIFO", NULL, EITHER, 0, KIND_CHECKPOINT,
        FILE_NAME, .acts = {{FOLDER(FILE_NAME)}, {FIFO(FILE_NAME "/last.checkpoint")}}),
    {0},
};
