/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LIMIT_MS = 120000, /* far more than a loaded machine with sanitizers needs */
    CPU_LIMIT_S = 60,
    FILE_LIMIT_BYTES = 1 << 30,
    TEXT_LIMIT = 1 << 20,
    NOBODY = 65534,
};

void give_up(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf(" (%s)\n", strerror(errno));
    exit(99);
}

static int text_file(void)
{
    int fd = memfd_create("output", MFD_CLOEXEC);

    if (fd < 0)
        give_up("memfd_create");
    return fd;
}

static char *text_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        give_up("an output");
    const size_t bytes = status.st_size < TEXT_LIMIT ? (size_t)status.st_size : TEXT_LIMIT;
    char *text = calloc(1, bytes + 1);

    if (!text || pread(fd, text, bytes, 0) < 0)
        give_up("reading an output");
    close(fd);
    return text;
}

static void limit(int resource, rlim_t most)
{
    const struct rlimit pair = {.rlim_cur = most, .rlim_max = most};

    setrlimit(resource, &pair);
}

bool nobody_can_run(const char *path)
{
    int status;
    const pid_t child = fork();

    if (child == 0)
        _exit(setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY) || access(path, X_OK));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

__attribute__((noreturn)) static void become(char *const words[], unsigned flags, int out,
                                             int error)
{
    int in = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, CPU_LIMIT_S);
    limit(RLIMIT_FSIZE, FILE_LIMIT_BYTES);
    signal(SIGCHLD, flags & CLOSED ? SIG_IGN : SIG_DFL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(error, 2);
    if ((flags & AS_NOBODY) && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
        _exit(98);
    execv(words[0], words);
    _exit(97);
}

/* Wait for the child to end. Returns false after the limit. */
static bool wait_end(pid_t child)
{
    struct pollfd watch = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};

    if (watch.fd < 0)
        give_up("pidfd_open");
    const char *limit_s = getenv("HOSTILE_LIMIT_S");
    int ready = poll(&watch, 1, limit_s ? atoi(limit_s) * 1000 : LIMIT_MS);
    close(watch.fd);
    return ready > 0;
}

void command_run(char *const words[], unsigned flags, struct command_result *result)
{
    const int out = text_file(), error = text_file();

    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        give_up("fork");
    if (child == 0)
        become(words, flags, out, error);
    setpgid(child, child);
    *result = (struct command_result){.late = !wait_end(child)};
    kill(-child, SIGKILL); /* leftover processes of the command */
    waitpid(child, &result->status, 0);
    result->text = text_of(out);
    result->error = text_of(error);
}

void command_words(char *words[COMMAND_WORDS], int count, const char *template, const char *at,
                   const char *percent)
{
    char *copy = strdup(template), *rest = copy, *word;

    while (count + 1 < COMMAND_WORDS && (word = strsep(&rest, " "))) {
        char *mark = strpbrk(word, "@%");
        int code = !mark ? asprintf(&words[count], "%s", word)
                         : asprintf(&words[count], "%.*s%s%s", (int)(mark - word), word,
                                    *mark == '@' ? at : percent, mark + 1);
        if (code < 0)
            give_up("out of memory");
        if (*words[count])
            count++;
        else
            free(words[count]);
    }
    words[count] = NULL;
    free(copy);
}

void command_words_free(char *words[COMMAND_WORDS])
{
    for (int i = 0; words[i]; i++)
        free(words[i]);
}

void run_program(const char *text)
{
    char *words[COMMAND_WORDS] = {strdup(getenv("HOSTILE_PROGRAM"))};
    struct command_result result;

    command_words(words, 1, text, "@", "%");
    command_run(words, 0, &result);
    if (result.late || result.status)
        give_up("%s: %s", text, result.error);
    command_free(&result);
    command_words_free(words);
}

void command_free(struct command_result *result)
{
    free(result->text);
    free(result->error);
    *result = (struct command_result){0};
}

/* Return the length of the UTF-8 character at text; 0 if it is invalid or a terminal could
 * interpret it as a command. */
static int printable(const unsigned char *text)
{
    if (text[0] < 0x80)
        return text[0] == '\n' || text[0] == '\t' || text[0] == '\r' ||
               (text[0] >= 0x20 && text[0] != 0x7f);
    int more = text[0] >= 0xc2 && text[0] < 0xe0   ? 1
               : text[0] >= 0xe0 && text[0] < 0xf0 ? 2
               : text[0] >= 0xf0 && text[0] < 0xf5 ? 3
                                                   : 0;
    for (int i = 1; i <= more; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if (text[0] == 0xc2 && text[1] < 0xa0) /* C1 */
        return 0;
    return more ? more + 1 : 0;
}

static const char *first_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    for (int step; *at; at += step)
        if ((step = printable(at)) == 0)
            return (const char *)at;
    return NULL;
}

const char *command_fault(const struct command_result *result)
{
    static char text[256];
    const char *control = first_control(result->text);
    const int status = WEXITSTATUS(result->status);

    if (result->late)
        return "does not end";
    if (WIFSIGNALED(result->status)) {
        snprintf(text, sizeof text, "ended by signal %d (%s)", WTERMSIG(result->status),
                 strsignal(WTERMSIG(result->status)));
        return text;
    }
    if (strstr(result->error, "Sanitizer") || strstr(result->error, "runtime error:"))
        return "a sanitizer found a fault";
    if (status > 2) {
        snprintf(text, sizeof text, "exit status %d", status);
        return text;
    }
    if (status != 0 && !strchr(result->error, '\n') && !strchr(result->text, '\n'))
        return "fails without a reason";
    if (!control)
        control = first_control(result->error);
    if (control) {
        snprintf(text, sizeof text, "prints the byte 0x%02x raw", (unsigned char)*control);
        return text;
    }
    return NULL;
}
