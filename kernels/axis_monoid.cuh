/* Monoids as the kernels along an axis take them: axis_struct, whose partials are structs, and axis_words, whose partials begin with words that
   are added. Included by axis.cuh. */
#pragma once

#include "kernels/axis_ends.cuh"
#include "kernels/axis_quick.cuh"

/* The monoids whose partials are structs: all of a partial is ordered. */
template <class Fold> struct axis_struct {
    typedef typename Fold::value value;
    typedef typename Fold::partial ordered;
    static constexpr enum monoid monoid = Fold::monoid;
    static constexpr enum cost cost = Fold::cost;
    struct state {
        ordered partial;
    };
    struct whole {
        ordered end;
    };
    static constexpr int words = 0;
    static constexpr bool has_splits = true, tries = false, tries_tiles = false, takes_tiles = false, slots_in_room = false;
    static constexpr bool is_light = axis_is_light(Fold::cost, sizeof(value));
    static constexpr size_t staged_bytes = axis_staged_bytes(Fold::cost);
    static __device__ __forceinline__ bool finish(const ordered &partial, const struct axis_finish &call, uint64_t r)
    {
        result_finish<Fold::monoid>(partial, call, r);
        return true;
    }
    static constexpr bool is_ordered = true, has_rest = monoid_has_neutral(Fold::monoid, is_floating_value<value>);
    static constexpr bool is_framed = is_light && has_rest && !Fold::indexed;
    static __device__ __forceinline__ value rest() { return neutral_of<Fold::monoid, value>(); }
    static __device__ __forceinline__ void start(state *s, void *, bool) { s->partial = Fold::identity(); }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first)
    {
        Fold::tile(&s->partial, x, n, first);
    }
    static __device__ __forceinline__ void place(state *s, const struct axis_tile &tile, uint64_t first)
    {
        if constexpr (Fold::indexed)
            indices_place<Fold>(&s->partial, tile, first);
    }
    static __device__ __forceinline__ void flush(state *, int64_t *, bool) {}
    static __device__ __forceinline__ void normalise(int64_t *) {}
    static __device__ __forceinline__ ordered end_of(const state &s) { return s.partial; }
    static __device__ __forceinline__ ordered end_identity() { return Fold::identity(); }
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b) { Fold::combine(a, b); }
    static constexpr bool shares = Fold::scaled;
    /* Brings a sum that is relative to a maximum to the largest of the lanes with which it is combined: once, which takes long. */
    static __device__ __forceinline__ void share_max(ordered *partial, uint32_t members, uint32_t distance)
    {
        double max = partial->max;
        unsigned long long bin = 0;
        if constexpr (Fold::exact)
            bin = (unsigned long long)partial->bin;
#pragma unroll 1
        for (uint32_t step = distance; step < members * distance && step < 32; step *= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, max, (int)step);
            const unsigned long long other_bin = Fold::exact ? __shfl_xor_sync(0xffffffffu, bin, (int)step) : 0;
            bin = other > max ? other_bin : bin;
            max = other > max ? other : max;
        }
        if constexpr (Fold::exact)
            exp_bins_raise(partial, max, (int64_t)bin);
        else
            Fold::rescale(partial, max);
    }
};

/* What exact sums other than stats have beside their words: nothing. */
struct axis_no_ends {
    __device__ __forceinline__ void start() {}
    __device__ __forceinline__ void combine(const axis_no_ends &) {}
};

/* The monoids whose partials begin with words that are added. Members of a group add to the same words, by atomics. */
template <class Exact> struct axis_words {
    typedef typename Exact::value value;
    typedef typename std::conditional<Exact::indexed, axis_ends<value>, axis_no_ends>::type ordered;
    typedef typename Exact::partial state;
    typedef typename Exact::whole partial;
    static constexpr enum monoid monoid = Exact::monoid;
    static constexpr enum cost cost = Exact::indexed ? COST_STATS : sizeof(value) < 8 ? COST_LITTLE : COST_MUCH; /* of shorter values that of sums without words, which are tried first */
    static constexpr size_t staged_bytes = 0;
    struct words_only {
        int64_t of[Exact::words];
    };
    struct words_and_ends {
        int64_t of[Exact::words];
        axis_ends<value> end;
    };
    typedef typename std::conditional<Exact::indexed, words_and_ends, words_only>::type whole;
    typedef axis_quick<monoid, value> quick;
    typedef quick_splits<quick> splits;
    typedef quick_splits<axis_quick<monoid, value, quick::in_doubles>> pairs; /* of splits of f32, of whose sums single doubles round many */
    static constexpr bool tries = quick::exists, tries_tiles = tries && quick::takes_tiles; /* accumulators without words first */
    static constexpr bool takes_tiles = false, slots_in_room = false, is_light = false, is_framed = false;
    static constexpr int words = Exact::words;
    static constexpr bool is_ordered = Exact::indexed, has_rest = monoid_has_neutral(Exact::monoid, is_floating_value<value>);
    static __device__ __forceinline__ value rest() { return neutral_of<Exact::monoid, value>(); }
    static __device__ __forceinline__ void sinks_place(struct exact_sink *sinks, int64_t *at, bool shared)
    {
        constexpr int count = sizeof(state::sinks) / sizeof(struct exact_sink);
        Exact::place(sinks, at, 1);
        for (int i = 0; i < count; i++)
            sinks[i].shared = shared;
    }
    static __device__ __forceinline__ void start(state *s, int64_t *at, bool shared)
    {
        Exact::start(s, nullptr);
        sinks_place(s->sinks, at, shared);
    }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first) { Exact::tile(s, x, n, first); }
    static __device__ __forceinline__ void place(state *s, const struct axis_tile &tile, uint64_t first)
    {
        if constexpr (Exact::indexed) {
            indices_place<typename ordered::least>(&s->accumulator.min, tile, first);
            indices_place<typename ordered::largest>(&s->accumulator.max, tile, first);
        }
    }
    /* Adds what a thread holds to the words. together: all threads of its warp have the same, and call it. */
    static __device__ __forceinline__ void flush(state *s, int64_t *at, bool together)
    {
        if (together) {
            struct exact_sink sinks[sizeof(state::sinks) / sizeof(struct exact_sink)];
            sinks_place(sinks, at, true);
            Exact::add(s, sinks);
        } else if constexpr (Exact::indexed) {
            Exact::sum::finish(&s->accumulator.sum, &s->sinks[0]);
            Exact::norm1::finish(&s->accumulator.norm1, &s->sinks[1]);
            Exact::norm2::finish(&s->accumulator.norm2, &s->sinks[2]);
        } else {
            Exact::finish(&s->accumulator, &s->sinks[0]);
        }
    }
    static __device__ __forceinline__ void normalise(int64_t *at)
    {
        struct exact_sink sinks[sizeof(state::sinks) / sizeof(struct exact_sink)];
        sinks_place(sinks, at, false);
        for (struct exact_sink &sink : sinks)
            exact_sink_normalise(&sink);
    }
    static __device__ __forceinline__ ordered end_identity()
    {
        ordered end;
        end.start();
        return end;
    }
    static __device__ __forceinline__ ordered end_of(const state &s)
    {
        ordered end;
        if constexpr (Exact::indexed) {
            end.min = s.accumulator.min;
            end.max = s.accumulator.max;
        }
        return end;
    }
    static constexpr bool shares = false;
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b) { a->combine(*b); }
};
