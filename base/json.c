/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/atomic.h"
#include "base/escape.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static struct counter refused; /* since the last check */

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);

    if (!memory)
        counter_add(&refused, 1);
    return memory;
}

/* Before main(): memory of one allocator must not be freed by another. */
__attribute__((constructor)) static void watch_allocations(void)
{
    json_set_alloc_funcs(allocate, free);
}

void json_put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, json_text(text));
}

void json_put_number(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_number(value));
}

void json_put_count(json_t *object, const char *key, uint64_t count)
{
    /* jansson's integers are signed; only a seed can exceed them. */
    json_object_set_new(object, key,
                        count <= INT64_MAX ? json_integer((json_int_t)count)
                                           : json_number((double)count));
}

json_t *json_put_new(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) ? NULL : value;
}

json_t *json_append_new(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) ? NULL : value;
}

int json_check(void)
{
    const uint64_t count = counter_get(&refused);

    counter_sub(&refused, count);
    return count ? fail(ENOMEM, "out of memory for JSON") : 0;
}

/* ---- text ---- */

json_t *json_text_of(const char *text, size_t bytes)
{
    json_t *string = json_stringn(text, bytes);

    if (string)
        return string;
    const size_t room = 4 * bytes + 1;
    char *escaped = allocate(room);
    if (escaped)
        string = json_string(escape_text(ESCAPE_INVALID, text, bytes, escaped, room));
    free(escaped);
    return string;
}

json_t *json_text(const char *text)
{
    return text ? json_text_of(text, strlen(text)) : json_null();
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *json_to_text(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    size_t count = 0, used = 0;

    /* jansson leaves DEL, a control character, as it is. It can only be in a string. */
    for (const char *at = text; text && (at = strchr(at, 0x7f)); at++)
        count++;
    char *escaped = count ? allocate(strlen(text) + 5 * count + 1) : NULL;
    if (count) {
        for (const char *at = text; escaped && *at; at++) {
            if (*at == 0x7f) {
                memcpy(escaped + used, "\\u007f", 6);
                used += 6;
            } else {
                escaped[used++] = *at;
            }
        }
        if (escaped)
            escaped[used] = '\0';
        free(text);
        text = escaped;
    }
    if (json_check() == 0 && text)
        return text;
    free(text);
    fail(ENOMEM, "out of memory for JSON");
    return NULL;
}

json_t *json_texts(uint32_t count, size_t stride, const char *texts)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_text(texts + i * stride));
    return array;
}
