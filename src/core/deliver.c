/* Results of begun folds in device memory, for callers that do not wait on the host. A kernel in the caller's stream waits for the results
   and stores them. A thread of the context watches for the fold's partial, exchanges it through the ranks' shared memory, finishes it and
   gives the results. Folds are delivered in the order of the calls.

   Why nothing waits forever if all ranks make the same calls in the same order. The thread calls no function of the driver or of MPI: a
   driver's lock may be held by a call that waits for the stream. So delivery k needs the kernels of fold k on all ranks, and what is before
   them in their streams: deliveries below k, which all ranks have called before. A call that waits for the stream is a wait for delivery k. */
#include "comm/beside.h"
#include "core/pipeline.h"
#include "fold/rows.h"

#include "base/host.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double WATCH_SECONDS = 1e-3; /* before the thread sleeps between two looks */

struct deliveries {
    struct allfold_context *ctx;
    struct comm_beside *beside;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct begun *waiting[BEGUN_MOST]; /* a ring */
    int first, count;
    bool ending;
};

static void pause_for(long nanoseconds) { nanosleep(&(struct timespec){0, nanoseconds}, NULL); }

/* Waits for the kernel's partial, without the driver. */
static void watch(const struct deliverer *deliverer, struct begun *begun)
{
    const double start = clock_seconds();
    while (!deliverer->arrived(begun->queue)) {
        if (atomic_load(&begun->abandoned) && !deliverer->arrived(begun->queue)) {
            error_set(&begun->error, ALLFOLD_DEVICE_ERROR, "a kernel left no result");
            return;
        }
        if (clock_seconds() - start > WATCH_SECONDS)
            pause_for(20000);
    }
}

/* Takes the partial of this rank. */
static void settle(struct allfold_context *ctx, struct begun *begun)
{
    if (begun->under_way) {
        watch(ctx->device->backend->deliverer, begun);
        if (begun->error.status == ALLFOLD_OK)
            monoid_combine(fold_monoid(begun->call.fold, ctx->level, begun->type), begun->type, &begun->partial, begun->queue->partial);
    }
    begun->under_way = false;
}

/* What is stored of a fold that failed. */
static struct delivered nothing_of(allfold_type type)
{
    return (struct delivered){type_kind(type) == 'f' ? type_real_bits(type, (double)NAN) : 0, -1};
}

/* The results that are wanted. One that its memory cannot hold, though the end of the fold could give it, is an error of both. */
static void finish(struct begun *begun, struct delivered *found)
{
    static const struct rows_shape one = {.dimensions = 0};
    struct rows_output outputs[FOLD_RESULTS_MAX] = {{NULL, NULL}};
    for (int i = 0; i < begun->delivery.count; i++) {
        const struct delivery_output *const wanted = &begun->delivery.outputs[i];
        outputs[i] = (struct rows_output){wanted->values != NULL ? &found[i].value : NULL, wanted->indices != NULL ? &found[i].index : NULL};
    }
    const struct rows rows = {.call = &begun->call, .type = begun->type, .count = begun->count, .partials = begun->partial.bytes,
                              .outputs = outputs, .run = 1, .inner = 1, .shape = &one};
    if (begun->error.status == ALLFOLD_OK && rows_finish(&rows, (struct range){0, 1}, &begun->error) == ALLFOLD_OK)
        return;
    for (int i = 0; i < begun->delivery.count; i++)
        found[i] = nothing_of(rows_type(begun->call.fold, (size_t)i, begun->type, begun->call.result_type));
}

/* To where the caller wants it, in host memory. */
static void store(const struct delivery *delivery, const struct delivered *found)
{
    for (int i = 0; i < delivery->count; i++) {
        if (delivery->outputs[i].values != NULL)
            memcpy(delivery->outputs[i].values, &found[i].value, (size_t)delivery->outputs[i].bytes);
        if (delivery->outputs[i].indices != NULL)
            *delivery->outputs[i].indices = found[i].index;
    }
}

/* Of one fold, all ranks' parts together. */
static void exchange(const struct deliveries *d, struct begun *begun)
{
    struct comm_part part = begun_part(begun);
    comm_beside_combine(d->beside, &part, &begun->error);
    begun->state = begun->error.status == ALLFOLD_OK ? BEGUN_EVERYWHERE : BEGUN_FAILED;
    begun->count = part.count;
}

static void deliver(const struct deliveries *d, struct begun *begun)
{
    struct delivered found[FOLD_RESULTS_MAX] = {{0, -1}};
    if (begun->state == BEGUN_HERE) {
        settle(d->ctx, begun);
        exchange(d, begun);
    }
    finish(begun, found);
    if (begun->queue != NULL)
        d->ctx->device->backend->deliverer->give(begun->queue, &begun->delivery, found);
}

static void *run(void *argument)
{
    struct deliveries *const d = argument;
    pthread_mutex_lock(&d->lock);
    while (!d->ending || d->count > 0) {
        if (d->count == 0) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        struct begun *const begun = d->waiting[d->first];
        pthread_mutex_unlock(&d->lock);
        deliver(d, begun);
        pthread_mutex_lock(&d->lock);
        d->first = (d->first + 1) % BEGUN_MOST;
        d->count--;
        atomic_store(&begun->delivering, false);
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Collective. */
static allfold_status open_deliveries(struct allfold_context *ctx, struct error *error)
{
    struct deliveries *const d = calloc(1, sizeof *d);
    if (d == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for deliveries");
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK || comm_beside_open(&ctx->comm, &d->beside, error) != ALLFOLD_OK) {
        free(d);
        return error->status;
    }
    d->ctx = ctx;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    if (pthread_create(&d->thread, NULL, run, d) != 0)
        error_set(error, ALLFOLD_NO_MEMORY, "no thread for deliveries");
    const bool started = error->status == ALLFOLD_OK;
    ctx->deliveries = d;
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK) {
        d->ending = !started;
        core_deliveries_close(ctx);
    }
    return error->status;
}

void core_deliveries_close(struct allfold_context *ctx)
{
    struct deliveries *const d = ctx->deliveries;
    if (d == NULL)
        return;
    for (int i = 0; i < BEGUN_MOST; i++)
        core_delivered(ctx, &ctx->begun[i]);
    if (!d->ending) {
        pthread_mutex_lock(&d->lock);
        d->ending = true;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        pthread_join(d->thread, NULL);
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    comm_beside_close(d->beside);
    free(d);
    ctx->deliveries = NULL;
}

void core_delivered(struct allfold_context *ctx, struct begun *begun)
{
    const struct deliverer *const deliverer = ctx->device->backend->deliverer;
    for (double start = clock_seconds(); atomic_load(&begun->delivering);)
        if (clock_seconds() - start > WATCH_SECONDS) {
            if (begun->queue != NULL && deliverer->is_done(begun->queue))
                atomic_store(&begun->abandoned, true);
            pause_for(20000);
        }
}

/* Of a backend without streams: with all folds that are begun. */
static void deliver_now(struct allfold_context *ctx, struct begun *begun)
{
    struct delivered found[FOLD_RESULTS_MAX] = {{0, -1}};
    struct error error = begun->error;
    if (begun->state == BEGUN_HERE)
        begun_exchange(ctx, &error);
    finish(begun, found);
    store(&begun->delivery, found);
}

allfold_status core_deliver(struct allfold_context *ctx, struct begun *begun, const struct delivery *delivery, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    const uint32_t id = begun->delivery.id + 1 != 0 ? begun->delivery.id + 1 : 1;
    begun->delivery = *delivery;
    begun->delivery.id = id;
    if (backend->deliverer == NULL) {
        deliver_now(ctx, begun);
        begun->delivered = true;
        return error->status;
    }
    if (ctx->deliveries == NULL && open_deliveries(ctx, error) != ALLFOLD_OK)
        return error->status;
    struct deliveries *const d = ctx->deliveries;
    const struct delivery known = begun->delivery;
    if (begun->queue == NULL && backend->queues_open(ctx->device, 0, 1, &begun->queue, error) != ALLFOLD_OK && begun->error.status == ALLFOLD_OK)
        begun->error = *error;
    begun->delivered = true;
    atomic_store(&begun->abandoned, false);
    atomic_store(&begun->delivering, true);
    pthread_mutex_lock(&d->lock);
    d->waiting[(d->first + d->count++) % BEGUN_MOST] = begun;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return error->status != ALLFOLD_OK ? error->status : backend->deliverer->deliver(begun->queue, &known, error);
}
