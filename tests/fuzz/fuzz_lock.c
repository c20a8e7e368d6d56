/* SPDX-License-Identifier: Apache-2.0
 * A lock file with any contents. The first byte chooses whether another process holds it. A file
 * that is not a lock stays unchanged. */
#include "tests/fuzz/fuzz.h"

#include "base/draft.h"
#include "base/fail.h"

#include <fcntl.h>
#include <sys/file.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct file_lock lock;
    int other = -1;
    char again[16];

    if (count < 1)
        return 0;
    const bool is_held = bytes[0] & 1;
    const char *path = fuzz_write("lock", bytes + 1, count - 1);
    if (is_held) {
        other = open(path, O_RDONLY | O_CLOEXEC);
        FUZZ_CHECK(other >= 0 && flock(other, LOCK_EX) == 0);
    }
    fail_clear();
    int code = file_lock_acquire(&lock, path);
    FUZZ_CHECK(code == 0 || *fail_reason());
    FUZZ_CHECK(code < 0 || !is_held);
    file_lock_release(&lock);
    FUZZ_CHECK((access(path, F_OK) == 0) == (code != 0));
    if (is_held) {
        ssize_t got = pread(other, again, sizeof again, 0);
        FUZZ_CHECK(got >= 0 && memcmp(again, bytes + 1, (size_t)got) == 0);
        close(other);
    }
    return 0;
}
