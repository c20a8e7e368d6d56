/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/engine/account.h"

static double cpu_seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

static uint64_t hints_ns(const struct account *account)
{
    return account->hinting ? counter_get(&account->hinting->ns) : 0;
}

void account_begin(struct account *account, struct result_epoch *epoch)
{
    account->epoch = epoch;
    getrusage(RUSAGE_SELF, &account->usage);
    epoch->start_ns = account->idle_ns = clock_now_ns();
    account->waited_ns = account->order_ns = 0;
    account->taken = (struct pace){0};
    pace_add(&account->taken, epoch->start_ns, 0);
    account->waits = loader_waits(account->loader);
    account->open_wait_ns = batches_open_wait_ns(account->batches);
    account->hints_ns = hints_ns(account);
}

void account_stop(struct account *account)
{
    const struct loader_waits now = loader_waits(account->loader), *before = &account->waits;
    struct result_epoch *epoch = account->epoch;
    struct result_waits *waits = &epoch->waits;

    /* Both moments are while the clock runs: no stage waits longer than its threads had time. */
    *waits = (struct result_waits){
        .loader_storage_ns = now.storage_ns - before->storage_ns,
        .loader_memory_ns = now.memory_ns - before->memory_ns,
        .decode_input_ns = now.records_ns - before->records_ns,
        .decode_slot_ns = batches_open_wait_ns(account->batches) - account->open_wait_ns,
        .decode_hints_ns = hints_ns(account) - account->hints_ns,
        .trainer_input_ns = epoch->wait_ns,
    };
    epoch->wall_ns = clock_now_ns() - epoch->start_ns;
    /* A decode thread either waits, or makes hints, or decodes. */
    waits->decode_busy_ns = account->workers * epoch->wall_ns - waits->decode_input_ns -
                            waits->decode_slot_ns - waits->decode_hints_ns;
}

void account_reads(struct account *account, const struct loader_figures *loader)
{
    struct result_epoch *epoch = account->epoch;
    enum { BATCHES_LEAST = 20 };

    if (loader->read_end_ns <= loader->quarter_ns || loader->quarter_ns == 0)
        return;
    epoch->read_head_ns = loader->head_ns;
    epoch->read_rest_ns = loader->read_end_ns - loader->quarter_ns;
    const uint64_t read = epoch->samples - epoch->samples / 4;
    const uint64_t taken = pace_amount(&account->taken, loader->read_end_ns) -
                           pace_amount(&account->taken, loader->quarter_ns);
    const uint64_t apart = read > taken ? read - taken : taken - read;
    if (epoch->batches < BATCHES_LEAST || apart > read / 10)
        return;
    epoch->steady_samples = read;
    epoch->steady_ns = epoch->read_rest_ns;
}

void account_end(struct account *account)
{
    struct result_epoch *epoch = account->epoch;
    const struct rusage *before = &account->usage;
    struct loader_figures loader;
    struct rusage after;

    getrusage(RUSAGE_SELF, &after);
    epoch->cpu_user_s = cpu_seconds(&after.ru_utime) - cpu_seconds(&before->ru_utime);
    epoch->cpu_system_s = cpu_seconds(&after.ru_stime) - cpu_seconds(&before->ru_stime);
    if (loader_epoch_figures(account->loader, &loader)) {
        epoch->requests = loader.requests;
        epoch->request_bytes = loader.request_bytes;
        epoch->shuffle_ns = loader.plan_ns;
        epoch->order_ns = loader.plan_ns < account->order_ns ? loader.plan_ns : account->order_ns;
        epoch->storage_idle_ns = loader.idle_ns;
        if (loader.read_start_ns && loader.read_end_ns > loader.read_start_ns) {
            epoch->read_samples = epoch->samples + loader.spare;
            epoch->read_ns = loader.read_end_ns - loader.read_start_ns;
        }
        account_reads(account, &loader);
        if (loader.read_end_ns)
            recorder_mark(account->recorder, "drain", epoch->epoch, loader.read_end_ns);
    }
    epoch->limit = result_epoch_limit(epoch, account->workers, account->reads);
}

void account_batch(struct account *account, const struct batch *batch, uint64_t taken_ns)
{
    struct result_epoch *epoch = account->epoch;

    if (epoch->batches++ == 0) {
        epoch->first_batch_ns = taken_ns - epoch->start_ns;
        epoch->first_step_ns = account->idle_ns - epoch->start_ns;
    } else {
        epoch->paced_samples += batch->account.samples;
        epoch->paced_bytes += batch->account.record_bytes;
        epoch->paced_ns = taken_ns - epoch->start_ns - epoch->first_batch_ns;
    }
    epoch->samples += batch->account.samples;
    epoch->skipped += batch->account.skipped;
    epoch->record_bytes += batch->account.record_bytes;
    epoch->digest_sum += batch->account.digest_sum;
    epoch->digest_xor ^= batch->account.digest_xor;
    pace_add(&account->taken, taken_ns, epoch->samples);
    meter_add(account->meter, METER_TRAINED_COUNT, batch->count);
}

static void tell_wait(struct account *account, uint64_t wait_ns)
{
    account->told_wait_ns += wait_ns;
    meter_add(account->meter, METER_TRAINER_BATCH_NS, wait_ns);
}

void account_idle(struct account *account, uint64_t now_ns)
{
    const uint64_t idle_ns = now_ns - account->idle_ns;
    const uint64_t owed_ns = idle_ns < account->owed_wait_ns ? idle_ns : account->owed_wait_ns;

    account->owed_wait_ns -= owed_ns;
    tell_wait(account, idle_ns - owed_ns);
    account->waited_ns += idle_ns;
    account->idle_ns = now_ns;
}

void account_order(struct account *account, uint64_t now_ns)
{
    account_idle(account, now_ns);
    account->order_ns = account->waited_ns;
}

uint64_t account_step_begin(struct account *account, uint64_t now_ns)
{
    account_idle(account, now_ns);
    const uint64_t waited_ns = account->waited_ns;
    account->waited_ns = 0;
    account->step_ns = now_ns;
    return waited_ns;
}

void account_step_goes_on(struct account *account, uint64_t now_ns)
{
    if (account->step_ns == 0)
        return;
    account->told_ns += now_ns - account->step_ns;
    meter_add(account->meter, METER_TRAINER_BUSY_NS, now_ns - account->step_ns);
    account->step_ns = now_ns;
}

void account_step(struct account *account, const struct trainer_times *times)
{
    struct result_epoch *epoch = account->epoch;

    account->step_ns = 0;
    epoch->wait_ns += times->wait_ns;
    /* The wait before the step is known. The meter has it, and maybe too much: the trainer knows
     * that a device still computed, or that a batch was ready. That is in the step, and a timeline
     * would show the time twice. */
    if (times->wait_ns > account->told_wait_ns)
        tell_wait(account, times->wait_ns - account->told_wait_ns);
    account->told_wait_ns -= times->wait_ns;
    account->owed_wait_ns = account->told_wait_ns;
    epoch->compute_ns += times->compute_ns;
    epoch->upload_ns += times->upload_ns;
    epoch->copy_ns += times->copy_ns;
    epoch->exchange_ns += times->exchange_ns;
    epoch->update_ns += times->update_ns;
    epoch->nominal_ns += times->nominal_ns;
    if (times->is_due)
        histogram_add(account->late_ns, times->late_ns);
    if (epoch->first_compute_ns == 0) {
        /* A device ends the step long after its call, which only passes the batch. */
        const uint64_t end_ns =
            epoch->first_batch_ns + times->upload_ns + times->compute_ns + times->exchange_ns;
        epoch->first_compute_ns = times->compute_ns;
        if (times->compute_ns && end_ns > epoch->first_step_ns)
            epoch->first_step_ns = end_ns;
    }
    /* Of what the steps took, the meter already knows a part. */
    const uint64_t busy_ns =
        times->compute_ns + times->upload_ns + times->exchange_ns + times->update_ns;
    const uint64_t told_ns = busy_ns < account->told_ns ? busy_ns : account->told_ns;
    account->told_ns -= told_ns;
    meter_add(account->meter, METER_TRAINER_BUSY_NS, busy_ns - told_ns);
}

void account_step_end(struct account *account, uint64_t now_ns)
{
    account->idle_ns = now_ns;
}
