/* Places of the extremes of rows and columns of f32 and 16 bits (found.cuh). A tile in which there is something larger is searched for its first place, by the warp or, of a column, by the
   thread. The smallest element is the largest of all with the other sign. All other places are found by axis_VALUE.cu. */
#include "kernels/found.cuh"

template <class Element> struct extreme_found : found_quick<Element> {
    typedef struct never trial;
    static constexpr bool turns = true, marked = false, finishes = true;
    static constexpr uint64_t least = 32 * Element::per_vector, least_unaligned = extremes_least_unaligned(sizeof(typename Element::stored));
    static constexpr enum monoid monoid = MONOID_argmax, monoid_turned = MONOID_argmin; /* their partials are alike */
    static bool placed(const struct axis_work *) { return true; }
    struct Partial {
        typedef fold_of<MONOID_argmax, float> fold;
        typedef typename fold::partial type;
        static __device__ __forceinline__ void combine(type *a, const type *b) { fold::combine(a, b); }
    };
    /* The largest of each vector, or NaN; and of all. */
    template <int vectors> static __device__ __forceinline__ float largest_of(const uint4 *x, float *of)
    {
        float largest = -INFINITY;
#pragma unroll
        for (int k = 0; k < vectors; k++) {
            of[k] = -INFINITY;
            vectors_extreme<Element, 1>(&of[k], &x[k]);
            largest = larger_f32(of[k], largest);
        }
        return largest;
    }
    /* The first element of a vector that equals `largest`, itself, or is NaN if that is, and where it is. */
    static __device__ __forceinline__ float first_of(const uint4 &x, float largest, uint32_t *place)
    {
        const auto search = [&x, place](float found, const auto &is_it) {
#pragma unroll
            for (uint32_t i = Element::per_vector; i-- > 0;) {
                const float x_i = Element::load(vector_element<typename Element::stored>(x, (int)i));
                if (is_it(x_i))
                    found = x_i, *place = i;
            }
            return found;
        };
        return largest == largest ? search(largest, [largest](float x_i) { return x_i == largest; }) : search(largest, [](float x_i) { return x_i != x_i; });
    }

    /* Of a column: what a thread has found. */
    template <int vectors> struct column {
        static constexpr bool ends_at_nan = false;
        float max; /* the element itself, of the sign that its zero has; NaN: the first one is found */
        bool nan;
        uint32_t best, at; /* the tile, UINT32_MAX while there is none, and the element in it */
        __device__ __forceinline__ void start(uint32_t, typename Partial::type *, uint32_t)
        {
            max = -INFINITY;
            nan = false;
            best = UINT32_MAX;
            at = 0;
        }
        template <uint32_t> __device__ __forceinline__ void take(const uint4 *x, uint32_t first, float)
        {
            float of[vectors];
            const float largest = largest_of<vectors>(x, of);
            if ((largest <= max && best != UINT32_MAX) || nan)
                return;
            nan = largest != largest;
            best = first;
            uint32_t vector_at = 0, place = 0;
            uint4 vector = x[0];
#pragma unroll
            for (int k = vectors; k-- > 0;)
                if (nan ? of[k] != of[k] : of[k] == largest)
                    vector_at = (uint32_t)k, vector = x[k];
            max = first_of(vector, largest, &place);
            at = vector_at * Element::per_vector + place;
        }
        template <uint32_t> __device__ __forceinline__ float end() const { return max; }
        __device__ __forceinline__ uint32_t place(uint32_t members) const { return best == UINT32_MAX ? UINT32_MAX : best + at * members; }
        static __device__ __forceinline__ void close(typename Partial::type *, enum terms) {}
    };

    /* Of a row: what a group of lanes has found; all have the same. */
    template <int vectors> struct row {
        static constexpr bool ends_at_nan = false;
        float max;
        bool nan;
        uint32_t at; /* UINT32_MAX while there is none */
        __device__ __forceinline__ void start(uint32_t, typename Partial::type *, uint32_t)
        {
            max = -INFINITY;
            nan = false;
            at = UINT32_MAX;
        }
        template <uint32_t group> __device__ __forceinline__ void take(const uint4 *x, uint32_t v, float)
        {
            float of[vectors], largest = largest_of<vectors>(x, of);
            lanes_share(&largest, group, take_larger());
            if ((largest <= max && at != UINT32_MAX) || nan)
                return;
            nan = largest != largest;
            const uint32_t own = threadIdx.x % group, mask = 0xffffffff >> (32 - group) << (threadIdx.x % 32 - own);
            uint32_t lanes = 0, first = 0; /* that have it in the first of the vectors, and which that is */
            uint4 vector = x[0];
#pragma unroll
            for (int k = vectors; k-- > 0;) {
                const uint32_t here = __ballot_sync(mask, nan ? of[k] != of[k] : of[k] == largest);
                if (here != 0)
                    lanes = here, first = (uint32_t)k, vector = x[k];
            }
            const int lane = __ffs((int)lanes) - 1;
            uint32_t place = 0;
            const float found = __shfl_sync(mask, first_of(vector, largest, &place), lane);
            max = nan ? NAN : found;
            at = (v - own + (uint32_t)lane % group + first * group) * Element::per_vector + __shfl_sync(mask, place, lane);
        }
        template <uint32_t> __device__ __forceinline__ float end() const { return max; }
        static __device__ __forceinline__ void close(typename Partial::type *, enum terms) {}
    };
    template <uint32_t, class Row, class Item> static __device__ __forceinline__ uint32_t place(const Row &row, const Item &, float) { return row.at; }
    template <class Row> static __device__ __forceinline__ uint32_t column_place(const Row &column, uint32_t members) { return column.place(members); }
    template <class Row> static __device__ __forceinline__ typename Partial::type of(const Row &, float max, uint32_t place, uint64_t first)
    {
        typename Partial::type partial = Partial::fold::identity();
        if (max != max) {
            partial.nans = 1;
            partial.nan_index = first + place;
        } else if (place != UINT32_MAX) {
            partial.value = max;
            partial.index = first + place;
        }
        return partial;
    }
    static __device__ __forceinline__ void turn(typename Partial::type *partial, uint32_t signs) { partial->value = signs != 0 ? -partial->value : partial->value; }
};

int extremes_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    const bool smallest = work->monoid == MONOID_argmin;
    *launched = false;
    if ((work->monoid != MONOID_argmax && !smallest) || work->finish == nullptr || work->finish->nan != ALLFOLD_NAN_PROPAGATE)
        return cudaSuccess;
    return with_element(work->type, [&](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return find_launch<extreme_found<Element>>(work, multiprocessors, !smallest ? 0 : sizeof(typename Element::stored) == 2 ? 0x80008000 : 0x80000000, stream, launched);
        return cudaSuccess;
    });
}
