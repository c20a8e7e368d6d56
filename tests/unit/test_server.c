/* SPDX-License-Identifier: Apache-2.0
 * What a server's cache is called, from what the user's commands say: nothing is cold by a word. */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cachectl/server.h"

#include <errno.h>
#include <string.h>

enum { SET_BYTES = 1000000 };

#define ROW(resident, total, disk) \
    "{\"resident_bytes\": " resident ", \"total_bytes\": " total ", \"disk_read_bytes\": " disk "}"

/* ---- answers ---- */

static void answers_are_added_up(void **unused)
{
    struct server_look look;

    assert_int_equal(server_parse("  " ROW("1", "2", "3") "\n", &look), 0);
    assert_true(look.resident_known && look.disk_known);
    assert_true(look.resident_bytes == 1 && look.total_bytes == 2 && look.disk_read_bytes == 3);
    /* cachectl output for two paths on two servers. */
    assert_int_equal(server_parse("[" ROW("1", "2", "3") "," ROW(
                                      "10", "20", "0") "]\n"
                                                       "[" ROW("100", "200", "300") "]",
                                  &look),
                     0);
    assert_true(look.resident_bytes == 111 && look.total_bytes == 222);
    assert_int_equal(look.disk_read_bytes, 303);
    /* One unknown value makes the sum unknown. */
    assert_int_equal(
        server_parse("[" ROW("1", "2", "null") ",{\"resident_bytes\": null, "
                                               "\"total_bytes\": 5, \"reason\": \"ZFS\"}]",
                     &look),
        0);
    assert_false(look.resident_known);
    assert_false(look.disk_known);
    assert_string_equal(look.reason, "ZFS");
    assert_int_equal(server_parse("{\"disk_read_bytes\": 7}", &look), 0);
    assert_true(!look.resident_known && look.disk_known && look.disk_read_bytes == 7);
    assert_int_equal(server_parse("{\"resident_bytes\": 0}", &look), 0);
    assert_false(look.resident_known); /* of an unknown total */
}

static void hostile_answers_are_refused(void **unused)
{
    static const char *const answers[] = {
        "",
        " \n",
        "[]",
        "cold",
        "7",
        "null",
        "[[]]",
        "[7]",
        "{",
        "[{}",
        "{} x",
        ROW("-1", "2", "3"),
        ROW("1.5", "2", "3"),
        ROW("1", "\"2\"", "3"),
        ROW("1", "2", "true"),
        ROW("1", "2", "[]"),
        ROW("3", "2", "3"),
        ROW("1", "99999999999999999999", "3"),
        ROW("1", "1e30", "3"),
        "[" ROW("1", "9223372036854775807", "3") "," ROW("1", "9223372036854775807", "3") "]",
        "{\"resident_bytes\": 0, \"resident_bytes\": 0, \"total_bytes\": 1}",
        "\xff\xfe{}",
    };
    static char deep[CHILD_TEXT_BYTES];
    struct server_look look;

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (server_parse(answers[i], &look) != -EPROTO)
            fail_msg("'%s' is believed", answers[i]);
    memset(deep, '[', sizeof deep - 1);
    assert_refused(server_parse(deep, &look), -EPROTO, "cachectl status --json");
}

/* ---- commands ---- */

static struct server_result ask(const char *drop, const char *check, uint64_t timeout_ns)
{
    const struct server_request request = {.where = "nfs4 at /mnt",
                                           .drop_command = drop,
                                           .check_command = check,
                                           .set_bytes = SET_BYTES,
                                           .timeout_ns = timeout_ns};
    struct server_result result;

    server_make_cold(&request, &result);
    return result;
}

#define SAY(resident, total, disk) "echo '" ROW(resident, total, disk) "'"

static void only_an_answer_proves(void **unused)
{
    struct server_result result;

    server_make_cold(&(struct server_request){.set_bytes = SET_BYTES}, &result);
    assert_int_equal(result.state, SERVER_NONE);
    result = ask(NULL, NULL, 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_non_null(strstr(result.reason, "nfs4 at /mnt: server cache contents unknown"));
    assert_non_null(strstr(result.reason, "--server-check-cmd"));
    result = ask("true", NULL, 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_true(result.drop.made && result.drop.status == 0);
    result = ask("true", SAY("0", "1000000", "5"), 0);
    assert_int_equal(result.state, SERVER_COLD);
    assert_string_equal(result.reason, "");
    assert_true(result.looked && result.looked_before && result.start.disk_read_bytes == 5);
    result = ask(NULL, SAY("1000", "1000000", "null"), 0); /* 0.1% is allowed */
    assert_int_equal(result.state, SERVER_COLD);
    server_make_cold(&(struct server_request){.check_command = SAY("101", "1000000", "5"),
                                              .set_bytes = SET_BYTES,
                                              .read_bytes = SET_BYTES / 10},
                     &result); /* of what is read */
    assert_int_equal(result.state, SERVER_WARM);
    result =
        ask("true", SAY("1001", "9000000", "5"), 0); /* of the set, not of the bytes examined */
    assert_int_equal(result.state, SERVER_WARM);
    assert_non_null(strstr(result.reason, "though its caches were dropped"));
    result = ask("true", SAY("0", "999999", "5"), 0); /* another set, or part of this one */
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_non_null(strstr(result.reason, "check the set's files"));
    result = ask("true", SAY("0", "2048", "5"), 0);
    assert_non_null(strstr(result.reason, "covers 2.00 KiB, the data set has 976.56 KiB: "));
    result = ask("true", SAY("2048", "1000000", "5"), 0);
    assert_non_null(strstr(result.reason, "2.00 KiB of 976.56 KiB is in the server's memory"));
    result = ask("true", SAY("null", "1000000", "5"), 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
}

static void commands_that_fail_prove_nothing(void **unused)
{
    const uint64_t start_ns = clock_now_ns();
    struct server_result result = ask("echo no right >&2; exit 7", SAY("0", "1000000", "5"), 0);

    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_int_equal(result.drop.status, 7);
    assert_non_null(strstr(result.reason, "drop command ended with status 7: no right"));
    result = ask("true", SAY("0", "1000000", "5") "; exit 3", 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_int_equal(result.check.status, 3);
    result = ask("true", "echo cold", 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_non_null(strstr(result.reason, "not JSON"));
    result = ask("true", "yes", 0);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_int_equal(result.check.status, -EFBIG);
    /* The shell's child must end too, and must not block by keeping the pipe open. A caller that
     * waited for the child would take a minute. */
    result = ask("true", "sleep 60 & sleep 60", 200000000);
    assert_int_equal(result.check.status, -ETIMEDOUT);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_non_null(strstr(result.reason, "not done"));
    result = ask("sleep 60 & exit 0", SAY("0", "1000000", "5"), 0);
    assert_int_equal(result.state, SERVER_COLD);
    assert_true(clock_now_ns() - start_ns < UINT64_C(60000000000));
}

static void disks_are_read_from_start_to_end(void **unused)
{
    struct server_request request = {.set_bytes = SET_BYTES,
                                     .check_command = SAY("0", "1000000", "100")};
    struct server_result result;

    server_make_cold(&request, &result);
    request.check_command = SAY("900000", "1000000", "700");
    server_look_after(&request, &result);
    assert_true(result.state == SERVER_COLD && result.disk_known);
    assert_int_equal(result.disk_read_bytes, 600);
    result.disk_known = false;
    request.check_command = SAY("0", "1000000", "99"); /* it was restarted */
    server_look_after(&request, &result);
    assert_false(result.disk_known);
    assert_int_equal(result.state, SERVER_UNVERIFIED);
    assert_non_null(strstr(result.reason, "decreased"));
    server_make_cold(&(struct server_request){.set_bytes = SET_BYTES,
                                              .check_command = SAY("0", "1000000", "null")},
                     &result);
    server_look_after(&request, &result);
    assert_true(result.state == SERVER_COLD && !result.disk_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_added_up),
        cmocka_unit_test(hostile_answers_are_refused),
        cmocka_unit_test(only_an_answer_proves),
        cmocka_unit_test(commands_that_fail_prove_nothing),
        cmocka_unit_test(disks_are_read_from_start_to_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
