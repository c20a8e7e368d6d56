/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/preset.h"

#include <stddef.h>
#include <string.h>

const struct preset preset_table[] = {
    /* ImageRecordIter with path_imgidx: dmlc-core src/io/indexed_recordio_split.cc gives rank r the
     * records [r, r + 1) x ceil(N / P) of the index sorted by offset, shuffles that list again each
     * epoch and reads record by record, with one seek per record, on the single thread behind its
     * prefetching iterator. That iterator is reset between epochs, so reads stop there. */
    {.name = "mxnet",
     .summary = "MXNet: RecordIO with .idx, one reader per rank, a fixed range shuffled each epoch",
     .settings = {{"format", "recordio"},
                  {"shuffle", "mxnet"},
                  {"partition", "sticky"},
                  {"window", "1"},
                  {"reader", "pread:threads=1"},
                  {"iodepth", "1"}}},
    /* The ResNet example of TensorFlow's models (official/resnet/imagenet_main.py): 1024 files,
     * shuffled, ten read in parallel, shuffle buffer of 10000 records; a TFRecordDataset reads 256
     * KiB at a time. Under Horovod each process does this over all files; only its seed differs. It
     * repeats the set after the buffer (fused shuffle and repeat), so the buffer takes records of
     * the next epoch while it yields the last ones of this epoch. The window is a few such reads of
     * each file. */
    {.name = "horovod-tensorflow",
     .summary =
         "Horovod with TensorFlow: TFRecord, ten readers per rank, every rank reads all files",
     .settings = {{"format", "shards"},
                  {"shuffle", "tfdata:10000,interleave=10"},
                  {"partition", "replicated"},
                  {"reader", "pread:threads=10"},
                  {"iodepth", "10"},
                  {"bs", "256KiB"},
                  {"window", "auto"},
                  {"overlap-epochs", "yes"}}},
    /* DBReader::Read of caffe2/core/db.h: one cursor per rank in key order, advanced by the number
     * of ranks, wrapping around at the end; no shuffle. The reader goes through liblmdb's own map,
     * one page fault at a time. */
    {.name = "caffe2",
     .summary = "Caffe2: LMDB in key order, one mapped reader per rank, every P-th record",
     .settings = {{"format", "lmdb"},
                  {"shuffle", "none:stride=yes"},
                  {"partition", "elastic"},
                  {"remainder", "pad"},
                  {"window", "1"},
                  {"reader", "lmdb"},
                  {"iodepth", "1"}}},
    {.name = NULL},
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *preset = preset_table; preset->name; preset++)
        if (strcmp(preset->name, name) == 0)
            return preset;
    return NULL;
}

const char *preset_value(const struct preset *preset, const char *option)
{
    for (int i = 0; i < PRESET_SETTINGS && preset->settings[i].option; i++)
        if (strcmp(preset->settings[i].option, option) == 0)
            return preset->settings[i].value;
    return NULL;
}
