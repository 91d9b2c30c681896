/* Shares a pass of order statistics out among host threads. */
#include "device/cpu/order.h"

#include "base/host.h"
#include "device/device.h"

static bool (*const order_of[])(const struct order_work *work) = {
    [ISA_BASE] = cpu_order_base,
#ifdef ALLFOLD_HAVE_X86_ISA
    [ISA_AVX2] = cpu_order_avx2,
    [ISA_AVX512] = cpu_order_avx512,
#endif
};

enum { PART_LEAST = 1 << 16 }; /* elements for which a thread is worth waking */
#define PART_MOST (UINT64_C(1) << 31)

/* Some of the elements. Parts of a sample are whole strides. */
static bool do_part(const struct order_work *work, struct range part)
{
    const size_t bytes = allfold_type_bytes(work->type);
    struct order_work own = *work;
    own.x = (const char *)work->x + part.first * bytes;
    own.n = part.count;
    own.first = work->first + part.first;
    return order_of[host_isa()](&own);
}

allfold_status host_order(const struct order_work *work, int threads, struct error *error)
{
    const uint64_t wanted = u64_min(work->n / PART_LEAST, (uint64_t)threads);
    const uint64_t parts = work->kind == ORDER_SAMPLE ? 1 : u64_max(u64_max(wanted, 1), work->n / PART_MOST + 1);
    bool done = true;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(&& : done) if (parts > 1 && threads > 1)
    for (uint64_t part = 0; part < parts; part++)
        done = do_part(work, range_part(work->n, part, parts)) && done;
    return done ? ALLFOLD_OK : error_set(error, ALLFOLD_NO_MEMORY, "no memory for the counters of %u intervals", work->table->count + 1);
}
