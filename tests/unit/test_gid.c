/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gid.h"

#include <arpa/inet.h>

#include "tests/unit/unit.h"

static int rank_of(const char *address, bool is_v2)
{
    struct in6_addr gid;

    assert_int_equal(inet_pton(AF_INET6, address, &gid), 1);
    return gid_rank(&gid, is_v2);
}

/* As an adapter lists them: v1 and v2 of each address, the link-local one first. */
static void test_best_of_a_port(void **state)
{
    assert_int_equal(rank_of("fe80::1", false), GID_V1);
    assert_int_equal(rank_of("fe80::1", true), GID_LINK_LOCAL);
    assert_int_equal(rank_of("::ffff:192.0.2.1", false), GID_V1);
    assert_int_equal(rank_of("::ffff:192.0.2.1", true), GID_V2_IPV4);
    assert_int_equal(rank_of("2001:db8::1", true), GID_V2);
    assert_int_equal(rank_of("::", true), GID_NONE);
    assert_true(GID_V2_IPV4 > GID_V2 && GID_V2 > GID_LINK_LOCAL && GID_LINK_LOCAL > GID_V1 &&
                GID_V1 > GID_NONE);
}

static void test_text(void **state)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr gid;

    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &gid), 1);
    gid_text(&gid, text);
    assert_string_equal(text, "192.0.2.1");
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &gid), 1);
    gid_text(&gid, text);
    assert_string_equal(text, "2001:db8::1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_of_a_port),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
