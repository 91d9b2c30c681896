/* Stats of f32 along an axis, at level fast. Sums go to pairs tile by tile. Deviations are from a reference, the mean of a thread's first tile, and
   from the mean so far after each STATS_WINDOW elements. Included by axis.cuh. */
#pragma once

#include "kernels/axis_monoid.cuh"

constexpr uint32_t STATS_WINDOW = 32 * AXIS_SHAPE.tile;

struct axis_stats : axis_struct<fold_of<MONOID_stats, float>> {
    struct state {
        stats_f32 total;
        tiles_ends ends;
        double reference, sum, squares; /* of deviations from the reference */
        uint32_t count;                 /* of those */
    };
    static constexpr bool takes_tiles = true, slots_in_room = true, has_rest = true, is_light = false, is_framed = false;
    static __device__ __forceinline__ float rest() { return NAN; }
    static __device__ __forceinline__ void start(state *s, void *room, bool)
    {
        s->total = stats_identity_f32();
        s->ends.start(room);
        s->reference = s->sum = s->squares = 0.0;
        s->count = 0;
    }
    /* Adds the deviations so far to the moments. */
    static __device__ __forceinline__ void settle(state *s)
    {
        stats_f32 part;
        part.count = (double)s->count;
        part.mean = s->count > 0 ? s->sum / part.count : 0.0;
        part.m2 = s->squares - s->sum * part.mean;
        part.origin = (float)s->reference;
        stats_combine_moments_f32(&s->total, &part);
        s->sum = s->squares = 0.0;
        s->count = 0;
    }
    /* An f32 near the mean of the tile, or near that of all before. */
    static __device__ __forceinline__ float reference_of(const state *s, const float *x, uint32_t numbers)
    {
        float mean = (float)((double)s->total.origin + s->total.mean);
        if (s->total.count == 0.0) {
            const float part = 1.0f / (float)numbers;
            mean = 0.0f;
#pragma unroll
            for (uint32_t i = 0; i < AXIS_SHAPE.tile; i++)
                mean = x[i] == x[i] ? fmaf(x[i], part, mean) : mean;
        }
        return is_finite((double)mean) ? mean : 0.0f;
    }
    template <bool all> static __device__ __forceinline__ void add(state *s, const float *x)
    {
        double sum = ZERO_IDENTITY, norm1 = 0.0, norm2 = 0.0;
#pragma unroll
        for (uint32_t i = 0; i < AXIS_SHAPE.tile; i++) {
            const bool is_number = all || x[i] == x[i];
            const double number = is_number ? (double)x[i] : ZERO_IDENTITY, deviation = is_number ? (double)x[i] - s->reference : 0.0;
            sum += number;
            norm1 += fabs(number);
            norm2 = fma(number, number, norm2);
            s->sum += deviation;
            s->squares = fma(deviation, deviation, s->squares);
        }
        pair_add(&s->total.sum.total, sum);
        pair_add(&s->total.norm1.total, norm1);
        pair_add(&s->total.norm2.total, norm2);
    }
    static __device__ __forceinline__ void take_tile(state *s, const float *x, const struct axis_tile &tile, uint64_t length, uint64_t begin)
    {
        const uint32_t numbers = s->ends.take(x, tile, length, begin);
        if (s->count == 0 && numbers > 0)
            s->reference = (double)reference_of(s, x, numbers);
        if (numbers == AXIS_SHAPE.tile)
            add<true>(s, x);
        else
            add<false>(s, x);
        s->count += numbers;
        if (s->count >= STATS_WINDOW)
            settle(s);
    }
    static __device__ __forceinline__ void flush(state *, int64_t *, bool) {}
    static __device__ __forceinline__ ordered end_of(state &s)
    {
        s.ends.find(tiles_ends::MIN, &s.total.min);
        s.ends.find(tiles_ends::MAX, &s.total.max);
        settle(&s);
        return s.total;
    }
};
