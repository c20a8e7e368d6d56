/* SPDX-License-Identifier: Apache-2.0
 * The parsers of what the kernel writes below /proc and /sys: each takes every input. */
#include "tests/fuzz/fuzz.h"

#include "cachectl/outside.h"
#include "telemetry/probe.h"
#include "telemetry/devices.h"

/* Words are within the text and never empty, and there are no more words than bytes. */
static void walk(struct text text)
{
    const char *begin = text.at, *end = text.end;
    struct text line, word;
    uint64_t value;
    char copy[16];

    while (text_line(&text, &line)) {
        FUZZ_CHECK(line.at >= begin && line.end <= end && line.at <= line.end);
        for (;;) {
            const char *before = line.at;
            if (text_u64(&line, &value))
                FUZZ_CHECK(line.at > before);
            else if (text_word(&line, &word))
                FUZZ_CHECK(word.at < word.end && word.end <= end);
            else
                break;
        }
    }
    FUZZ_CHECK(text.at == end);
    FUZZ_CHECK(strlen(text_copy(text_of(begin, (size_t)(end - begin)), copy, sizeof copy)) <
               sizeof copy);
}

static void parse_storage(struct text text)
{
    struct disk_counters disk;
    struct process_counters process;
    struct nfs_counters nfs;
    struct lustre_counters lustre = {0};
    struct cgroup_counters cgroup = {0};
    struct mount mount;

    disk_parse_stat(text, &disk);
    process_parse_io(text, &process);
    nfs_parse(text, "/mnt/nfs", &nfs);
    lustre_add_stats(text, &lustre);
    cgroup_add_io_stat(text, 8, 0, &cgroup);
    cgroup_add_blkio(text, 8, 0, &cgroup);
    if (mount_find(text, "/mnt/nfs/set", (uint64_t)(text.end - text.at), &mount))
        FUZZ_CHECK(strncmp("/mnt/nfs/set", mount.point, 1) == 0 &&
                   strlen(mount.point) <= strlen("/mnt/nfs/set/"));
}

static void parse_others(struct text text)
{
    struct net_counters net;
    struct cpu_counters cpu;
    struct meminfo_levels memory;
    struct pressure_counters pressure;
    struct text rest = text, name;

    while (net_parse_next(&rest, &name, &net))
        FUZZ_CHECK(name.at >= text.at && name.end <= text.end);
    rest = text;
    while (cpu_parse_next(&rest, &name, &cpu))
        FUZZ_CHECK(rest.at > text.at);
    meminfo_parse(text, &memory);
    pressure_parse(text, &pressure);
    FUZZ_CHECK(infiniband_parse_rate(text) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct holder holder = {.inode = 1234, .device = 1, .path = "/set/a.rec"};
    char *exact = (char *)fuzz_exact(bytes, count), *line = malloc(count + 1);

    FUZZ_CHECK(line != NULL);
    walk(text_of(exact, count));
    parse_storage(text_of(exact, count));
    parse_others(text_of(exact, count));
    memcpy(line, bytes, count);
    line[count] = '\0';
    holder_line_matches(line, &holder);
    free(line);
    free(exact);
    return 0;
}
