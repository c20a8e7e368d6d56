/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files, job files and checkpoints from elsewhere.
 */
#include "tests/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>

#define FILE_NAME "file"

static void fifo(void)
{
    put_fifo(FILE_NAME);
}

static void folder(void)
{
    put_folder(FILE_NAME);
}

static void empty(void)
{
    put_text(FILE_NAME, "");
}

static void missing(void)
{
    put_link("nowhere", FILE_NAME);
}

static void binary(void)
{
    struct blob blob = {0};

    for (unsigned i = 0; i < 4096; i++)
        blob_fill(&blob, (int)(i * 37 >> 3 & 0xff), 1);
    blob_save(&blob, FILE_NAME);
}

static void zeros(void)
{
    put_sparse(FILE_NAME, UINT64_C(1) << 40);
}

/* ---- results ---- */

static void json_deep(void)
{
    struct blob blob = {0};

    blob_fill(&blob, '[', 1 << 20);
    blob_save(&blob, FILE_NAME);
}

static void json_numbers(void)
{
    put_text(FILE_NAME, "{\"schema\":1e999,\"jobs\":[{\"runs\":[{\"samples_per_second\":-1e308,"
                        "\"epochs\":[{\"seconds\":99999999999999999999999}]}]}]}");
}

static void json_types(void)
{
    put_text(FILE_NAME, "{\"schema\":\"iobench\",\"version\":[],\"jobs\":{\"a\":1},\"runs\":\"x\","
                        "\"valid\":null,\"median\":{},\"samples_per_second\":true}");
}

static void json_jobs(void)
{
    put_text(
        FILE_NAME,
        "{\"schema\":1,\"program\":\"iobench\",\"jobs\":[null,[],{},1,\"x\",{\"runs\":[{}]}]}");
}

static void json_escapes(void)
{
    put_text(FILE_NAME,
             "{\"schema\":1,\"label\":\"\\u001b[31mred\\u0007\\u009b\",\"jobs\":[{\"label\":"
             "\"\\u001b]0;x\\u0007\",\"runs\":[{\"samples_per_second\":1}]}]}");
}

static void json_no_utf8(void)
{
    put_text(FILE_NAME, "{\"schema\":1,\"label\":\"\xff\xfe\x9b\",\"jobs\":[]}");
}

static void json_cut(void)
{
    put_text(FILE_NAME, "{\"schema\":1,\"jobs\":[{\"runs\":[{\"samples_per_sec");
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

static void job_escapes(void)
{
    put_text(FILE_NAME, "[\x1b[31m]\n\x1b]0;x\a=\x9b\ndata=\x1b[2J\n");
}

static void job_options(void)
{
    put_text(FILE_NAME, "[a]\n=\n--=\niodepth=99999999999999999999\nbs=-1\nmemory=%s%n\n");
}

static void job_command(void)
{
    put_text(FILE_NAME,
             "[a]\ndata=.\ndrop-caches=yes\nserver-drop-cmd=touch ../sentinel/started\n");
}

static void job_itself(void)
{
    put_text(FILE_NAME, "[a]\nfile=" FILE_NAME "\ninclude=" FILE_NAME "\n");
}

/* ---- checkpoints ---- */

static void with_data(void)
{
    put_jpeg("x.jpg", 0);
}

static void checkpoint_head(void)
{
    struct blob blob = {0};

    with_data();
    blob_text(&blob, "IOBENCHK");
    blob_le32(&blob, 1);
    blob_fill(&blob, 0xff, 200);
    blob_save(&blob, FILE_NAME);
}

static void checkpoint_name(void)
{
    struct blob blob = {0};

    with_data();
    blob_text(&blob, "IOBENCHK");
    blob_le32(&blob, 1);
    blob_le32(&blob, 28);
    blob_le32(&blob, 10);
    blob_le32(&blob, 0);
    blob_fill(&blob, '\x1b', 64);
    blob_fill(&blob, 1, 4096);
    blob_save(&blob, FILE_NAME);
}

static void checkpoint_zeros(void)
{
    with_data();
    zeros();
}

static void checkpoint_fifo(void)
{
    with_data();
    fifo();
}

static void checkpoint_folder(void)
{
    put_folder(FILE_NAME);
    put_fifo(FILE_NAME "/last.checkpoint");
}

const struct hostile_set hostile_outputs[] = {
    SET("result-fifo", "a result is a FIFO", fifo, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-folder", "a result is a folder", folder, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-empty", "a result of 0 bytes", empty, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-missing", "a result is a dangling link", missing, REFUSED, 0, KIND_RESULT,
        FILE_NAME),
    SET("result-binary", "a result of noise", binary, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-huge", "a result of 1 TiB", zeros, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-deep", "JSON nested 1,048,576 deep", json_deep, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-numbers", "JSON with numbers out of range", json_numbers, REFUSED, 0, KIND_RESULT,
        FILE_NAME),
    SET("result-types", "JSON with other types", json_types, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-jobs", "JSON whose jobs are none", json_jobs, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("result-escapes", "JSON whose labels command a terminal", json_escapes, EITHER, 0,
        KIND_RESULT, FILE_NAME),
    SET("result-no-utf8", "JSON that is no UTF-8", json_no_utf8, REFUSED, 0, KIND_RESULT,
        FILE_NAME),
    SET("result-cut", "JSON that is cut", json_cut, REFUSED, 0, KIND_RESULT, FILE_NAME),
    SET("job-fifo", "a job file is a FIFO", fifo, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-folder", "a job file is a folder", folder, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-empty", "a job file of 0 bytes", empty, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-binary", "a job file of noise", binary, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-huge", "a job file of 1 TiB", zeros, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-sections", "a job file of 20,000 jobs", job_sections, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-line", "a job file with a line of 1 MiB", job_line, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("job-escapes", "a job file that commands a terminal", job_escapes, REFUSED, 0, KIND_JOB,
        FILE_NAME),
    SET("job-options", "a job file with wrong options", job_options, REFUSED, 0, KIND_JOB,
        FILE_NAME),
    SET("job-command", "a job file that starts a program", job_command, REFUSED, 0, KIND_JOB,
        FILE_NAME),
    SET("job-itself", "a job file that names itself", job_itself, REFUSED, 0, KIND_JOB, FILE_NAME),
    SET("checkpoint-head", "a checkpoint of wrong numbers", checkpoint_head, EITHER, 0,
        KIND_CHECKPOINT, FILE_NAME),
    SET("checkpoint-name", "a checkpoint whose name commands a terminal", checkpoint_name, EITHER,
        0, KIND_CHECKPOINT, FILE_NAME),
    SET("checkpoint-huge", "a checkpoint of 1 TiB of zeros", checkpoint_zeros, EITHER, 0,
        KIND_CHECKPOINT, FILE_NAME),
    SET("checkpoint-fifo", "a checkpoint is a FIFO", checkpoint_fifo, EITHER, 0, KIND_CHECKPOINT,
        FILE_NAME),
    SET("checkpoint-folder", "the last checkpoint is a FIFO", checkpoint_folder, EITHER, 0,
        KIND_CHECKPOINT, FILE_NAME),
    {0},
};
