/* SPDX-License-Identifier: Apache-2.0
 * The machine, from trees of files like those of kernels. */
#include "tests/unit/folder.h"

#include "pipeline/evidence/witness.h"

#define ARM "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd bf16\n"

static bool is_virtual(void)
{
    return machine_is_virtual(folder_path("proc"), folder_path("sys"));
}

static void named(const char *cpuinfo, const char *name)
{
    struct environment environment = {0};

    folder_put("proc/cpuinfo", cpuinfo);
    machine_describe(&environment, folder_path("proc"), folder_path("sys"));
    assert_string_equal(environment.cpu, name);
}

static void a_cpu_has_a_name(void **unused)
{
    named("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B14\nflags\t\t: fpu\n",
          "AMD EPYC 9B14");
    named(ARM "CPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n",
          "Arm Neoverse V2");
    named(ARM "CPU implementer\t: 0xc0\nCPU part\t: 0xd4f\n", "Arm implementer 0xc0 part 0xd4f");
    named(ARM "CPU implementer\t: 0x41\nCPU part\t: 0xfff\n", "Arm implementer 0x41 part 0xfff");
    named("processor\t: 0\n", "unknown");
}

static void x86_has_a_flag(void **unused)
{
    folder_put("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    folder_put("proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm\n");
    assert_true(is_virtual());
    folder_put("proc/cpuinfo", "flags\t\t: fpu lahf_lm\n");
    assert_false(is_virtual());
}

static void firmware_tells(const char *vendor, const char *product, bool it_is)
{
    folder_put("proc/cpuinfo", ARM);
    folder_put("sys/class/dmi/id/sys_vendor", vendor);
    folder_put("sys/class/dmi/id/product_name", product);
    assert_int_equal(is_virtual(), it_is);
}

static void elsewhere_firmware_tells(void **unused)
{
    firmware_tells("NVIDIA\n", "GB200 NVL\n", false);
    firmware_tells("QEMU\n", "QEMU Virtual Machine\n", true);
    firmware_tells("Amazon EC2\n", "c7g.16xlarge\n", true);
    firmware_tells("Amazon EC2\n", "c7g.metal\n", false);
    firmware_tells("Microsoft Corporation\n", "Virtual Machine\n", true);
    firmware_tells("\n", "\n", false);
}

static void so_does_a_device_tree(void **unused)
{
    folder_put("proc/cpuinfo", ARM);
    assert_false(is_virtual());
    folder_put("proc/device-tree/compatible", "raspberrypi,5-model-b");
    assert_false(is_virtual());
    folder_put("proc/device-tree/compatible", "linux,dummy-virt");
    assert_true(is_virtual());
}

static void or_the_hypervisor(void **unused)
{
    folder_put("proc/cpuinfo", ARM);
    folder_put("proc/device-tree/hypervisor/compatible", "linux,kvm");
    assert_true(is_virtual());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cpu_has_a_name, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(x86_has_a_flag, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(elsewhere_firmware_tells, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(so_does_a_device_tree, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(or_the_hypervisor, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
