/* Softmax of rows that stay in shared memory: few rows at level exact, log-softmax at that level, f64. Each is read once and written once.

     softmax_heavy_rows   a block, or several that exchange messages, keep a row in shared memory
         each thread, for every row: waits for the copies of its elements; the maximum of the block
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results, and starts copies of the next row to the places that become free */
#pragma once

#include "kernels/axis_softmax_registers.cuh"

/* A thread of a block that takes its part of one row after the other, stage by stage. A turn is a row of a group. */
constexpr uint32_t TURNS_KNOWN = 16;
template <class Row> struct row_thread {
    typedef typename Row::element Element;
    static constexpr int threads = HEAVY_SHAPE.threads, stage = HEAVY_SHAPE.stage, stage_vectors = threads * stage;
    const struct long_rows &rows;
    const row_part part;
    uint4 *places;   /* shared memory, from this thread's first vector on */
    uint32_t *known; /* shared memory: rows of the next turns, where they are claimed */
    int32_t count;   /* of vectors of the part from this thread's first one on */
    /* The stage that is copied next: of which turn's row, into which place. */
    uint32_t turn, number, place;
    const uint4 *from;
    int32_t left;

    __device__ __forceinline__ row_thread(const struct long_rows &rows, unsigned char *bytes, uint32_t *known)
        : rows(rows), part(rows), places((uint4 *)bytes + threadIdx.x), known(known), turn(0), place(0)
    {
        count = part.count - (int32_t)threadIdx.x;
        if (rows.claims) {
            if (threadIdx.x < ahead())
                known[threadIdx.x] = part.group + threadIdx.x * rows.groups;
            if (threadIdx.x == 0)
                claims_begin(rows);
            __syncthreads();
        }
        begin();
#pragma unroll 1
        for (uint32_t i = 0; i < rows.places; i++)
            copy();
    }
    static __device__ __forceinline__ bool is_left(int i, int32_t left) { return i * threads < left; }
    __device__ __forceinline__ uint32_t after(uint32_t at) const { return at + 1 < rows.places ? at + 1 : 0; }
    __device__ __forceinline__ uint32_t ahead() const { return 1 + rows.places / rows.stages; }
    __device__ __forceinline__ uint64_t row(uint32_t of) const
    {
        return rows.claims ? known[of % TURNS_KNOWN] : part.group + (uint64_t)of * rows.groups;
    }
    /* The first thread of a block claims a row early, and tells it before the barrier behind which it is copied. */
    __device__ __forceinline__ uint32_t claim() const
    {
        return rows.claims && threadIdx.x == 0 ? ahead() * rows.groups + claim_one(rows) : 0;
    }
    __device__ __forceinline__ void claimed(uint32_t of, uint32_t row) const
    {
        if (rows.claims && threadIdx.x == 0)
            known[(of + ahead()) % TURNS_KNOWN] = row;
    }
    __device__ __forceinline__ void begin()
    {
        const uint64_t r = row(turn);
        number = 0;
        from = rows.x + r * rows.x_stride + part.first + threadIdx.x;
        left = r < rows.rows ? count : 0;
    }
    /* Starts copies, and moves on. Copies are counted by stages, so there is a group for each. */
    __device__ __forceinline__ void copy()
    {
        uint4 *const to = places + place * stage_vectors;
#pragma unroll
        for (int i = 0; i < stage; i++)
            if (is_left(i, left))
                copy_async(to + i * threads, from + i * threads);
        copy_commit();
        place = after(place);
        from += stage_vectors;
        left -= stage_vectors;
        if (++number == rows.stages) {
            turn++;
            begin();
        }
    }
    /* A stage, which lies in that place. */
    __device__ __forceinline__ void read(int32_t left, uint32_t place, uint4 *x) const
    {
#pragma unroll
        for (int i = 0; i < stage; i++)
            x[i] = is_left(i, left) ? places[place * stage_vectors + i * threads] : least_vector<Element>();
    }
};

/* A row stays in the places, from which it is read three times. */
template <class Row> static __global__ void __launch_bounds__(HEAVY_SHAPE.threads, HEAVY_SHAPE.blocks)
softmax_heavy_rows(const __grid_constant__ struct long_rows rows)
{
    typedef row_thread<Row> thread;
    constexpr int threads = thread::threads, stage = thread::stage, per_vector = Row::element::per_vector;
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ uint32_t known[TURNS_KNOWN];
    thread own(rows, bytes, known);
    struct row_messages others = messages_of(rows, own.part);
    uint32_t place = 0; /* of the row's first stage */
#pragma unroll 1
    for (;; others.turn++) {
        const uint32_t turn = others.turn;
        const uint64_t r = own.row(turn);
        if (r >= rows.rows)
            break;
        const uint32_t claim = own.claim();
        typename Row::real max = -INFINITY;
        uint32_t at = place;
        int32_t left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            copy_wait((int)(rows.places - 1 - s)); /* all copies but those of the places behind it */
            own.read(left, at, vectors);
            Row::template take_max<stage>(&max, vectors);
            at = own.after(at);
            left -= thread::stage_vectors;
        }
        block_share<threads>(&max, take_larger());
        typename Row::terms terms(max);
        at = place;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, at, vectors);
            terms.template take_part<stage, true>(vectors, vectors, 0, left * per_vector, threads * per_vector);
            at = own.after(at);
            left -= thread::stage_vectors;
        }
        own.claimed(turn, claim);
        const typename Row::results results = terms.template results_of_blocks<threads>(others);
        uint4 *to = rows.y + r * rows.y_stride + own.part.first + threadIdx.x;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, place, vectors);
            own.copy();
#pragma unroll
            for (int i = 0; i < stage; i++)
                if (thread::is_left(i, left))
                    __stcs(to + i * threads, results.of(vectors[i]));
            place = own.after(place);
            to += thread::stage_vectors;
            left -= thread::stage_vectors;
        }
    }
}
