/* SPDX-License-Identifier: Apache-2.0 */
#include "base/landlock.h"

#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The interface is defined here since <linux/landlock.h> is as old as the distribution while the
 * kernel may be newer. Its numbers never change. */

struct ruleset_attributes {
    uint64_t files;  /* handled_access_fs */
    uint64_t net;    /* handled_access_net, since ABI 4 */
    uint64_t scoped; /* since ABI 6 */
};

struct path_beneath {
    uint64_t access;
    int32_t parent_fd;
} __attribute__((packed));

enum { QUERY_VERSION = 1, RULE_PATH_BENEATH = 1 };

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_MAKE_SOCK = 1 << 9,
    FS_MAKE_FIFO = 1 << 10,
    FS_REFER = 1 << 13,     /* since ABI 2; before, no renames between folders */
    FS_TRUNCATE = 1 << 14,  /* since ABI 3 */
    FS_IOCTL_DEV = 1 << 15, /* since ABI 5 */
    FS_ABI_1 = (1 << 13) - 1,
    FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    NET_TCP = 3,      /* bind and connect */
    SCOPE_SIGNAL = 2, /* none to processes outside */
};

static bool is_on;

bool landlock_is_on(void)
{
    return is_on;
}

int landlock_abi(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);

    return version > 0 ? (int)version : 0;
}

/* All access rights that this kernel can confine. */
static uint64_t handled(int abi)
{
    return FS_ABI_1 | (abi >= 2 ? FS_REFER : 0U) | (abi >= 3 ? FS_TRUNCATE : 0U) |
           (abi >= 5 ? FS_IOCTL_DEV : 0U);
}

int landlock_open(struct landlock_rules *rules, bool network)
{
    const int abi = landlock_abi();
    const struct ruleset_attributes attributes = {
        .files = handled(abi),
        .net = network ? 0 : NET_TCP,
        .scoped = network ? 0 : SCOPE_SIGNAL,
    };
    const size_t bytes = abi >= 6   ? sizeof attributes
                         : abi >= 4 ? offsetof(struct ruleset_attributes, scoped)
                                    : offsetof(struct ruleset_attributes, net);

    rules->fd = -1;
    rules->network = network;
    if (abi == 0)
        return fail(ENOSYS,
                    "this kernel has no Landlock (Linux 5.13 with CONFIG_SECURITY_LANDLOCK, "
                    "and landlock among the modules of /sys/kernel/security/lsm)");
    rules->fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, bytes, 0);
    return rules->fd < 0 ? fail(errno, "cannot make Landlock rules: %s", fail_errno_text(errno))
                         : 0;
}

int landlock_allow(struct landlock_rules *rules, const char *path, unsigned access)
{
    static const uint64_t rights[] = {
        FS_READ_DIR,
        FS_READ_FILE | FS_READ_DIR,
        FS_EXECUTE,
        FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
        FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE | FS_MAKE_REG | FS_MAKE_DIR | FS_REMOVE_FILE |
            FS_REMOVE_DIR | FS_REFER,
        FS_MAKE_SOCK | FS_MAKE_FIFO,
    };
    struct path_beneath rule = {0};
    struct stat status;

    for (unsigned i = 0; i < sizeof rights / sizeof *rights; i++)
        if (access >> i & 1)
            rule.access |= rights[i] & handled(landlock_abi());
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0 && (errno == EMFILE || errno == ENFILE))
        return fail(errno, "%s: cannot make a Landlock rule: %s", path, fail_errno_text(errno));
    if (rule.parent_fd < 0)
        return 0;
    int code = fstat(rule.parent_fd, &status) ? errno : 0;
    if (code == 0 && !S_ISDIR(status.st_mode))
        rule.access &= FS_OF_FILES;
    if (code == 0 && rule.access &&
        syscall(SYS_landlock_add_rule, rules->fd, RULE_PATH_BENEATH, &rule, 0))
        code = errno;
    if (!(access & LANDLOCK_PIN) || code)
        close(rule.parent_fd);
    /* EBADFD: a pipe or an in-memory file, which is not confined. */
    return code && code != EBADFD
               ? fail(code, "%s: cannot make a Landlock rule: %s", path, fail_errno_text(code))
               : 0;
}

int landlock_enter(struct landlock_rules *rules)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_landlock_restrict_self, rules->fd, 0))
        return fail(errno, "cannot enter the sandbox: %s", fail_errno_text(errno));
    is_on = true;
    fail_note_sandbox();
    return 0;
}

void landlock_close(struct landlock_rules *rules)
{
    if (rules->fd >= 0)
        close(rules->fd);
    rules->fd = -1;
}
