/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/hostile.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "dataset/synthesis.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- bytes ---- */

static uint8_t *room_for(struct blob *blob, size_t count)
{
    if (blob->room - blob->count < count) {
        blob->room = blob->room * 2 + count;
        blob->bytes = realloc(blob->bytes, blob->room);
        if (!blob->bytes)
            give_up("out of memory");
    }
    blob->count += count;
    return blob->bytes + blob->count - count;
}

void blob_add(struct blob *blob, const void *bytes, size_t count)
{
    if (count)
        memcpy(room_for(blob, count), bytes, count);
}

void blob_text(struct blob *blob, const char *text)
{
    blob_add(blob, text, strlen(text));
}

void blob_le32(struct blob *blob, uint32_t value)
{
    bytes_put_le32(room_for(blob, 4), value);
}

void blob_le64(struct blob *blob, uint64_t value)
{
    bytes_put_le64(room_for(blob, 8), value);
}

void blob_be32(struct blob *blob, uint32_t value)
{
    blob_le32(blob, __builtin_bswap32(value));
}

void blob_fill(struct blob *blob, int byte, size_t count)
{
    if (count)
        memset(room_for(blob, count), byte, count);
}

void blob_save(struct blob *blob, const char *path)
{
    put_file(path, blob->bytes, blob->count);
    free(blob->bytes);
    *blob = (struct blob){0};
}

/* ---- files ---- */

void put_file(const char *path, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || (count && write(fd, bytes, count) != (ssize_t)count) || close(fd))
        give_up("%s: cannot write", path);
}

void put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

void put_folder(const char *path)
{
    if (mkdir(path, 0755))
        give_up("%s: cannot make", path);
}

void put_link(const char *target, const char *path)
{
    if (symlink(target, path))
        give_up("%s: cannot link", path);
}

void put_fifo(const char *path)
{
    if (mkfifo(path, 0644))
        give_up("%s: cannot make", path);
}

void put_sparse(const char *path, uint64_t bytes)
{
    put_file(path, NULL, 0);
    if (truncate(path, (off_t)bytes))
        give_up("%s: cannot lengthen", path);
}

void load_file(const char *path, struct blob *blob)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status))
        give_up("%s: cannot open", path);
    uint8_t *to = status.st_size ? room_for(blob, (size_t)status.st_size) : NULL;
    if (to && read(fd, to, (size_t)status.st_size) != status.st_size)
        give_up("%s: cannot read", path);
    close(fd);
}

void copy_source(const char *from, const char *path)
{
    const char *top = getenv("HOSTILE_SOURCE");
    char whole[4096];
    struct blob blob = {0};

    snprintf(whole, sizeof whole, "%s/%s", top ? top : ".", from);
    load_file(whole, &blob);
    blob_save(&blob, path);
}

void patch_file(const char *path, int64_t offset, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status))
        give_up("%s: cannot open", path);
    if (pwrite(fd, bytes, count, offset < 0 ? status.st_size + offset : offset) != (ssize_t)count ||
        close(fd))
        give_up("%s: cannot write", path);
}

void cut_file(const char *path, uint64_t bytes)
{
    if (truncate(path, (off_t)bytes))
        give_up("%s: cannot cut", path);
}

/* ---- well-formed records ---- */

const uint8_t *sample_jpeg(uint64_t index, size_t *count)
{
    static struct synthesis *synthesis;
    static struct sample sample;
    const struct synthesis_settings settings = {.seed = 1, .classes = 10, .mean_bytes = 4000};

    if (!synthesis)
        synthesis = synthesis_open(&settings);
    if (!synthesis || synthesis_make(synthesis, index, &sample))
        give_up("cannot make an image");
    *count = sample.image_bytes;
    return sample.image;
}

void put_jpeg(const char *path, uint64_t index)
{
    size_t count;
    const uint8_t *jpeg = sample_jpeg(index, &count);

    put_file(path, jpeg, count);
}

static uint32_t masked_crc(const void *bytes, size_t count)
{
    const uint32_t crc = crc32c(0, bytes, count);

    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

void add_tfrecord(struct blob *blob, const void *payload, size_t count)
{
    uint8_t length[8];

    bytes_put_le64(length, count);
    blob_add(blob, length, sizeof length);
    blob_le32(blob, masked_crc(length, sizeof length));
    blob_add(blob, payload, count);
    blob_le32(blob, masked_crc(payload, count));
}

static void add_varint(struct blob *blob, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        blob_fill(blob, (int)(value & 0x7f) | 0x80, 1);
    blob_fill(blob, (int)value, 1);
}

/* Add a bytes field with the contents of `of`, and free `of`. */
static void add_field(struct blob *blob, int number, struct blob *of)
{
    blob_fill(blob, number << 3 | 2, 1);
    add_varint(blob, of->count);
    blob_add(blob, of->bytes, of->count);
    free(of->bytes);
    *of = (struct blob){0};
}

/* Add an entry to the map Features: kind 1 is bytes, 3 numbers. */
static void add_feature(struct blob *features, const char *key, int kind, struct blob *value)
{
    struct blob list = {0}, feature = {0}, entry = {0}, text = {0};

    add_field(&list, 1, value);
    add_field(&feature, kind, &list);
    blob_text(&text, key);
    add_field(&entry, 1, &text);
    add_field(&entry, 2, &feature);
    add_field(features, 1, &entry);
}

void add_example(struct blob *blob, uint64_t index, uint64_t label)
{
    struct blob image = {0}, number = {0}, features = {0}, example = {0};
    size_t count;
    const uint8_t *jpeg = sample_jpeg(index, &count);

    blob_add(&image, jpeg, count);
    add_varint(&number, label);
    add_feature(&features, "image/encoded", 1, &image);
    add_feature(&features, "image/class/label", 3, &number);
    add_field(&example, 1, &features);
    add_tfrecord(blob, example.bytes, example.count);
    free(example.bytes);
}

void add_recordio(struct blob *blob, uint64_t index)
{
    size_t count;
    const uint8_t *jpeg = sample_jpeg(index, &count);
    const uint32_t payload = (uint32_t)(24 + count);

    blob_le32(blob, UINT32_C(0xced7230a));
    blob_le32(blob, payload);
    blob_le32(blob, 0); /* flag */
    blob_le32(blob, 0); /* label 0.0 */
    blob_le64(blob, index);
    blob_le64(blob, 0);
    blob_add(blob, jpeg, count);
    blob_fill(blob, 0, (4 - payload % 4) % 4);
}

void tar_checksum(uint8_t header[512])
{
    unsigned sum = 0;

    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    header[155] = ' ';
}

void add_member(struct blob *blob, const char *name, char type, uint64_t bytes)
{
    uint8_t header[513] = {0};

    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 100, 8, "%07o", 0644);
    snprintf((char *)header + 108, 8, "%07o", 0);
    snprintf((char *)header + 116, 8, "%07o", 0);
    snprintf((char *)header + 124, 13, "%011llo", (unsigned long long)bytes);
    snprintf((char *)header + 136, 13, "%011o", 0);
    header[156] = (uint8_t)type;
    memcpy(header + 257, "ustar\00000", 8);
    tar_checksum(header);
    blob_add(blob, header, 512);
}

void add_tar_image(struct blob *blob, const char *name, uint64_t index)
{
    size_t count;
    const uint8_t *jpeg = sample_jpeg(index, &count);

    add_member(blob, name, '0', count);
    blob_add(blob, jpeg, count);
    blob_fill(blob, 0, (512 - count % 512) % 512);
}

void add_tar_end(struct blob *blob)
{
    blob_fill(blob, 0, 1024);
}

/* ---- sets ---- */

void hostile_mode(const struct hostile_act *act)
{
    if (chmod(act->path, (mode_t)act->number))
        give_up("%s: chmod", act->path);
}

void hostile_make(const struct hostile_set *set)
{
    if (set->make)
        set->make();
    for (const struct hostile_act *act = set->acts; act->kind != ACT_END; act++)
        switch (act->kind) {
        case ACT_CALL:
            act->call(act);
            break;
        case ACT_BYTES:
            put_file(act->path, act->bytes, act->count);
            break;
        case ACT_FOLDER:
            put_folder(act->path);
            break;
        case ACT_LINK:
            put_link(act->bytes, act->path);
            break;
        case ACT_FIFO:
            put_fifo(act->path);
            break;
        case ACT_SPARSE:
            put_sparse(act->path, act->number);
            break;
        case ACT_JPEG:
            put_jpeg(act->path, act->number);
            break;
        case ACT_PATCH:
            patch_file(act->path, (int64_t)act->number, act->bytes, act->count);
            break;
        case ACT_CUT:
            cut_file(act->path, act->number);
            break;
        default:
            give_up("no such act");
        }
}

/* ---- files that change ---- */

pid_t keep_moving(void (*change)(unsigned turn))
{
    int ready[2];
    char byte = 0;
    const pid_t parent = getpid();

    if (pipe(ready))
        give_up("pipe");
    pid_t child = fork();
    if (child < 0)
        give_up("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        change(0);
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (unsigned turn = 1; getppid() == parent; turn++) {
            change(turn);
            poll(NULL, 0, 1); /* leave the CPU to the program under test */
        }
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        give_up("the process that changes files did not start");
    close(ready[0]);
    return child;
}
