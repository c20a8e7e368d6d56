/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/size/recording.h"

#include "base/fail.h"
#include "base/file.h"
#include "report/load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDING_BYTES_MAX = 256 << 20 };

/* Reads that were counted. */
struct recorded_reads {
    double count, bytes;
};

/* What a probe did not count is null, and as 0. */
static double rate_of(const json_t *line, const char *key)
{
    return fmax(0, load_number(line, key)); /* fmax() of 0 and NAN is 0 */
}

/* A storage whose reads were not counted, as Lustre's are not, says nothing of their size. */
static void add_reads(const json_t *line, const char *count_key, const char *bytes_key,
                      double seconds, struct recorded_reads *reads)
{
    const double count = load_number(line, count_key);

    if (!(count > 0))
        return;
    reads->count += count * seconds;
    reads->bytes += rate_of(line, bytes_key) * seconds;
}

int size_recording_load(const char *path, struct size_recording *recording)
{
    struct {
        double seconds, bytes;
    } halves[2] = {{0}};
    struct recorded_reads reads = {0};
    char *text = NULL;
    size_t bytes = 0, lines = 0;

    *recording = (struct size_recording){0};
    int code = file_load(path, RECORDING_BYTES_MAX, &text, &bytes);
    if (code)
        return code;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    for (size_t i = 0, begin = 0; i < lines && code == 0; i++) {
        const size_t length =
            (size_t)((const char *)memchr(text + begin, '\n', bytes - begin) - (text + begin));
        json_t *line = json_loadb(text + begin, length, 0, NULL);
        const double interval_s = load_number(line, "interval_s");
        const double rate = rate_of(line, "storage_read_bytes_per_s") +
                            rate_of(line, "nfs_read_bytes_per_s") +
                            rate_of(line, "lustre_read_bytes_per_s");
        const bool is_second = 2 * i >= lines;
        if (interval_s > 0) {
            halves[is_second].seconds += interval_s;
            halves[is_second].bytes += rate * interval_s;
            add_reads(line, "storage_read_count_per_s", "storage_read_bytes_per_s", interval_s,
                      &reads);
            add_reads(line, "nfs_read_count_per_s", "nfs_read_bytes_per_s", interval_s, &reads);
            recording->peak_bytes_per_s = fmax(recording->peak_bytes_per_s, rate);
        } else {
            code = -EINVAL;
        }
        json_decref(line);
        begin += length + 1;
    }
    free(text);
    const double seconds = halves[0].seconds + halves[1].seconds;
    const double read = halves[0].bytes + halves[1].bytes;

    if (code || lines < 2)
        return fail(EINVAL, "%s: expected two or more lines of 'iobench monitor --json'", path);
    if (!(read > 0))
        return fail(EINVAL, "%s: nothing was read from storage while it was recorded", path);
    recording->seconds = seconds;
    recording->bytes_per_s = (struct quantity){
        .value = read / seconds,
        /* The difference between the halves of the recording is its uncertainty. */
        .spread = fabs(halves[0].bytes / halves[0].seconds - halves[1].bytes / halves[1].seconds) /
                  (2 * read / seconds),
    };
    /* Of a few reads of a disk beside the storage that is read from, nothing follows for that one.
     */
    recording->read_bytes = reads.bytes > read / 2 ? reads.bytes / reads.count : 0;
    return 0;
}

void size_recording_apply(const struct size_recording *recording, double gpus,
                          struct sizing_inputs *inputs)
{
    struct quantity *rate = &inputs->of[SIZING_GPU_RATE];

    *rate = recording->bytes_per_s;
    rate->value /= gpus * inputs->of[SIZING_SAMPLE_BYTES].value;
    if (recording->read_bytes > 0)
        inputs->of[SIZING_READ_BYTES] = (struct quantity){.value = recording->read_bytes};
}
