/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/machine.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/landlock.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

enum { PATH_BYTES = 512, TEXT_BYTES = 256 };

/* Find a line of the first CPU. */
static bool find_cpu(const char *proc, const char *key, char *value, size_t bytes)
{
    char path[PATH_BYTES], line[8192];
    bool found = false;

    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    FILE *file = file_stream_kernel(path);
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strstr(line, ": ");
        found = colon && strncmp(line, key, strlen(key)) == 0;
        line[strcspn(line, "\n")] = '\0';
        if (found)
            snprintf(value, bytes, "%s", colon + 2);
    }
    if (file)
        fclose(file);
    return found;
}

/* The first line, or string of a device tree, of a file below a root. */
static bool find_text(const char *root, const char *name, char text[static TEXT_BYTES])
{
    return file_peek(text, TEXT_BYTES, "%s/%s", root, name) && text[0];
}

/* Kernels of AArch64 give no name, but the main ID register: MIDR_EL1, implementer and part. */
static void name_cpu(const char *proc, char *name, size_t bytes)
{
    static const struct {
        const char *implementer, *part, *name;
    } known[] = {
        {"0x41", "0xd0c", "Arm Neoverse N1"},
        {"0x41", "0xd40", "Arm Neoverse V1"},
        {"0x41", "0xd49", "Arm Neoverse N2"},
        {"0x41", "0xd4f", "Arm Neoverse V2"},
        {"0x41", "0xd83", "Arm Neoverse V3AE"},
        {"0x41", "0xd84", "Arm Neoverse V3"},
        {"0x41", "0xd8e", "Arm Neoverse N3"},
        {"0x41", "0xd08", "Arm Cortex-A72"},
        {"0x46", "0x001", "Fujitsu A64FX"},
        {"0x48", "0xd01", "HiSilicon TaiShan v110"},
        {"0x48", "0xd02", "HiSilicon TaiShan v120"},
        {"0xc0", "0xac3", "Ampere-1"},
        {"0xc0", "0xac4", "Ampere-1a"},
    };
    char implementer[16], part[16];

    if (find_cpu(proc, "model name", name, bytes))
        return;
    if (!find_cpu(proc, "CPU implementer", implementer, sizeof implementer) ||
        !find_cpu(proc, "CPU part", part, sizeof part)) {
        snprintf(name, bytes, "unknown");
        return;
    }
    snprintf(name, bytes, "Arm implementer %s part %s", implementer, part);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(implementer, known[i].implementer) == 0 && strcmp(part, known[i].part) == 0)
            snprintf(name, bytes, "%s", known[i].name);
}

/* On x86 the hypervisor bit (CPUID leaf 1, ECX bit 31) is among the CPU flags. AArch64 has no such
 * bit: there a device tree tells (linux,dummy-virt is a machine that exists only under QEMU and the
 * like), Xen, or DMI. */
bool machine_is_virtual(const char *proc, const char *sys)
{
    static const char *const files[] = {"class/dmi/id/product_name", "class/dmi/id/sys_vendor",
                                        "class/dmi/id/board_vendor", "class/dmi/id/bios_vendor"};
    static const char *const names[] = {
        "KVM",
        "QEMU",
        "Amazon EC2",
        "Google Compute Engine",
        "Virtual Machine",
        "OpenStack",
        "KubeVirt",
        "Alibaba Cloud ECS",
        "VMware",
        "VMW",
        "Xen",
        "Parallels",
        "BHYVE",
        "Apple Virtualization",
        "VirtualBox",
        "innotek GmbH",
    };
    char flags[8192], text[TEXT_BYTES];

    if (find_cpu(proc, "flags", flags, sizeof flags))
        return strstr(flags, " hypervisor");
    if (find_text(proc, "device-tree/hypervisor/compatible", text) ||
        find_text(sys, "hypervisor/type", text))
        return true;
    if (find_text(proc, "device-tree/compatible", text) && strcmp(text, "linux,dummy-virt") == 0)
        return true;
    /* What the firmware says, as systemd-detect-virt has them, and Azure and Alibaba. */
    /* Amazon's machines without a hypervisor: c7g.metal, m8g.metal-24xl. */
    if (find_text(sys, files[0], text) && strstr(text, ".metal"))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t k = 0; find_text(sys, files[i], text) && k < sizeof names / sizeof *names; k++)
            if (strncmp(text, names[k], strlen(names[k])) == 0)
                return true;
    return false;
}

void machine_describe(struct environment *environment, const char *proc, const char *sys)
{
    struct utsname names;
    struct sysinfo memory;
    struct headroom headroom;
    time_t now = time(NULL);
    struct tm utc;

    uname(&names);
    snprintf(environment->host, sizeof environment->host, "%s", names.nodename);
    snprintf(environment->kernel, sizeof environment->kernel, "%.70s %.70s", names.sysname,
             names.release);
    name_cpu(proc, environment->cpu, sizeof environment->cpu);
    snprintf(environment->clock_source, sizeof environment->clock_source, "%s", clock_source());
    snprintf(environment->sandbox, sizeof environment->sandbox, "none");
    if (landlock_is_on())
        snprintf(environment->sandbox, sizeof environment->sandbox, "landlock ABI %d",
                 landlock_abi());
    environment->cpu_count = thread_cpu_count();
    headroom_find(&headroom, proc, sys);
    environment->memory_limit_bytes = headroom.limit_bytes;
    if (sysinfo(&memory) == 0)
        environment->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    gmtime_r(&now, &utc);
    strftime(environment->started, sizeof environment->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
