/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/buffer.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>

int buffer_open(struct buffer *buffer, struct sequence *sequence, uint64_t capacity,
                uint64_t initial, struct plan_traits *traits)
{
    const uint64_t inputs_max = sequence_draws_max(sequence); /* a larger buffer would never fill */

    if (capacity > inputs_max)
        capacity = inputs_max;
    if (capacity == 0)
        return fail(EINVAL, "a shuffle buffer must hold at least 1 record");
    if (capacity > UINT32_MAX)
        return fail(EINVAL, "a shuffle buffer of %llu records is too large: at most 2^32 - 1",
                    (unsigned long long)capacity);
    buffer->capacity = (uint32_t)capacity;
    buffer->initial = initial < capacity ? (uint32_t)initial : buffer->capacity;
    traits->slots = capacity;
    buffer->slots = sequence_table(sequence, traits, capacity, sizeof *buffer->slots,
                                   "the slots of its buffer");
    return buffer->slots ? 0 : -ENOMEM;
}

void buffer_begin(struct buffer *buffer, const struct sequence *sequence, uint64_t epoch)
{
    for (uint32_t i = 0; i < buffer->capacity; i++)
        buffer->slots[i] = i;
    buffer->held = 0;
    buffer->due = buffer->initial ? buffer->initial : 1;
    buffer->left = sequence->draws;
    buffer->random = random_start(sequence_seed(&sequence->scope, SEQUENCE_BUFFER, epoch, false));
}

int buffer_next(struct buffer *buffer, uint64_t (*input)(void *context), void *context,
                struct plan_op *ops, uint32_t max)
{
    uint32_t *slots = buffer->slots;
    uint32_t count = 0;

    while (count < max && (buffer->left || buffer->held)) {
        if (buffer->due && buffer->left) {
            ops[count++] = (struct plan_op){
                .kind = PLAN_FETCH, .record = input(context), .slot = slots[buffer->held++]};
            buffer->due--;
            buffer->left--;
            continue;
        }
        assert(buffer->held > 0 && buffer->held <= buffer->capacity);
        uint32_t pick = (uint32_t)random_below(&buffer->random, buffer->held);
        uint32_t slot = slots[pick];
        slots[pick] = slots[--buffer->held];
        slots[buffer->held] = slot;
        ops[count++] = (struct plan_op){.kind = PLAN_DRAW, .slot = slot};
        buffer->due = buffer->capacity - buffer->held >= 2 ? 2 : 1;
    }
    return (int)count;
}
