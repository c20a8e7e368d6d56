/* SPDX-License-Identifier: Apache-2.0
 *
 * atomic: the only place for atomics. A counter for statistics (relaxed), a flag to stop or wake a
 * thread, a countdown whose last decrement sees all writes made before the others, and a gate.
 */
#ifndef IOBENCH_BASE_ATOMIC_H
#define IOBENCH_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counter {
    _Atomic uint64_t value;
};

static inline void counter_add(struct counter *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&counter->value, amount, memory_order_relaxed);
}

static inline uint64_t counter_get(const struct counter *counter)
{
    return atomic_load_explicit(&((struct counter *)(uintptr_t)counter)->value,
                                memory_order_relaxed);
}

/* Add amount; return false, adding nothing, if the sum would exceed limit. */
static inline bool counter_reserve(struct counter *counter, uint64_t amount, uint64_t limit)
{
    uint64_t before = counter_get(counter);

    do
        if (before > limit || amount > limit - before)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&counter->value, &before, before + amount,
                                                  memory_order_relaxed, memory_order_relaxed));
    return true;
}

static inline void counter_sub(struct counter *counter, uint64_t amount)
{
    atomic_fetch_sub_explicit(&counter->value, amount, memory_order_relaxed);
}

struct flag {
    atomic_bool value;
};

static inline void flag_set(struct flag *flag)
{
    atomic_store_explicit(&flag->value, true, memory_order_release);
}

static inline void flag_clear(struct flag *flag)
{
    atomic_store_explicit(&flag->value, false, memory_order_release);
}

/* Both return the previous value. */
static inline bool flag_test_and_set(struct flag *flag)
{
    return atomic_exchange_explicit(&flag->value, true, memory_order_acq_rel);
}

static inline bool flag_test_and_clear(struct flag *flag)
{
    return atomic_exchange_explicit(&flag->value, false, memory_order_acq_rel);
}

static inline bool flag_get(const struct flag *flag)
{
    return atomic_load_explicit(&((struct flag *)(uintptr_t)flag)->value, memory_order_acquire);
}

struct countdown {
    _Atomic uint32_t left;
};

static inline void countdown_set(struct countdown *countdown, uint32_t count)
{
    atomic_store_explicit(&countdown->left, count, memory_order_release);
}

/* Return true to exactly one caller: the one that reaches zero. */
static inline bool countdown_done(struct countdown *countdown, uint32_t amount)
{
    return atomic_fetch_sub_explicit(&countdown->left, amount, memory_order_acq_rel) == amount;
}

/* Release/acquire counter: reading N shows all writes made before N was stored. */
struct gate {
    _Atomic uint64_t value;
};

static inline void gate_raise(struct gate *gate, uint64_t value)
{
    atomic_store_explicit(&gate->value, value, memory_order_release);
}

static inline uint64_t gate_value(const struct gate *gate)
{
    return atomic_load_explicit(&((struct gate *)(uintptr_t)gate)->value, memory_order_acquire);
}

#endif
