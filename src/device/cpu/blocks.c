/* Folds an array in blocks, on the CPU: by the thread that calls, or by all of the device's threads, with the same bits.
   Blocks follow from the array's length alone, and their partials are combined in order. */
#include "device/cpu/cpu.h"

uint64_t cpu_block_elements(uint64_t n)
{
    const uint64_t blocks = (n + BLOCK - 1) / BLOCK;
    return n <= BLOCK ? BLOCK : (blocks + BLOCKS_MAX - 1) / BLOCKS_MAX * BLOCK;
}

/* One block of an array beyond 2^44 elements is taken in steps. */
void cpu_fold_block(const struct cpu_loops *loops, const struct work *work, struct range block, struct partial *partial)
{
    const uint64_t end = block.first + block.count;
    monoid_identity(work->monoid, work->type, partial);
    for (uint64_t start = block.first; start < end; start += 1u << 31) {
        struct work step = *work;
        step.x = (const char *)work->x + start * allfold_type_bytes(work->type);
        step.y = work->y == NULL ? NULL : (const char *)work->y + start * allfold_type_bytes(work->type);
        step.n = u64_min(end - start, 1u << 31);
        step.first = work->first + start;
        loops->fold(&step, partial);
    }
}

static struct range block_range(const struct work *work, uint64_t block, uint64_t length)
{
    return (struct range){block * length, u64_min(length, work->n - block * length)};
}

void cpu_fold_by_all(const struct cpu_queue *cpu, const struct work *work, struct partial *partial)
{
    const struct cpu_loops *const loops = cpu_loops_of(&cpu->queue);
    const size_t stride = (monoid_bytes(work->monoid, work->type) + 63) / 64 * 64;
    const uint64_t length = cpu_block_elements(work->n), blocks = (work->n + length - 1) / length;
#pragma omp parallel for schedule(static) num_threads(cpu->queue.device->threads)
    for (uint64_t block = 0; block < blocks; block++)
        cpu_fold_block(loops, work, block_range(work, block, length), (struct partial *)(cpu->blocks + block * stride));
    monoid_identity(work->monoid, work->type, partial);
    for (uint64_t block = 0; block < blocks; block++)
        monoid_combine(work->monoid, work->type, partial, (const struct partial *)(cpu->blocks + block * stride));
}

void cpu_fold_by_caller(const struct cpu_loops *loops, const struct work *work, struct partial *partial)
{
    const uint64_t length = cpu_block_elements(work->n), blocks = (work->n + length - 1) / length;
    struct partial next;
    if (blocks <= 1) {
        cpu_fold_block(loops, work, (struct range){0, work->n}, partial);
        return;
    }
    monoid_identity(work->monoid, work->type, partial);
    for (uint64_t block = 0; block < blocks; block++) {
        cpu_fold_block(loops, work, block_range(work, block, length), &next);
        monoid_combine(work->monoid, work->type, partial, &next);
    }
}

void cpu_fold_many_by_all(const struct cpu_queue *cpu, const struct fold_item *items, uint64_t count)
{
    const struct cpu_loops *const loops = cpu_loops_of(&cpu->queue);
    const uint64_t longest = 16 * BLOCK; /* that one thread takes */
    uint64_t elements = 0;
    for (uint64_t i = 0; i < count; i++)
        elements += items[i].work.n;
#pragma omp parallel for schedule(dynamic) num_threads(cpu->queue.device->threads) if (elements > BLOCK)
    for (uint64_t i = 0; i < count; i++)
        if (items[i].work.n <= longest)
            cpu_fold_by_caller(loops, &items[i].work, items[i].partial);
    for (uint64_t i = 0; i < count; i++)
        if (items[i].work.n > longest)
            cpu_fold_by_all(cpu, &items[i].work, items[i].partial);
}
