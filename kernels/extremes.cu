/* Places of the extremes of rows and columns of f32 and 16 bits (found.cuh): a thread searches a tile in which there is something larger for its first place; the smallest element is the
   largest of all with the other sign. All other places are found by axis_VALUE.cu. */
#include "kernels/found.cuh"

template <class Of> struct extreme_found {
    typedef Of Element;
    typedef struct never trial;
    static constexpr bool turns = true, marked = false, finishes = true;
    static constexpr enum monoid monoid = MONOID_argmax, monoid_turned = MONOID_argmin; /* their partials are alike */
    struct Partial {
        typedef fold_of<MONOID_argmax, float> fold;
        typedef typename fold::partial type;
        static __device__ __forceinline__ void combine(type *a, const type *b) { fold::combine(a, b); }
    };
    template <int vectors> struct row {
        static constexpr bool ends_at_nan = false;
        float max; /* the element itself, of the sign that its zero has; NaN: the first one is found */
        bool nan;
        uint32_t best, at; /* the tile, UINT32_MAX while there is none, and the element in it */
        __device__ __forceinline__ void start(uint32_t)
        {
            max = -INFINITY;
            nan = false;
            best = UINT32_MAX;
            at = 0;
        }
        __device__ __forceinline__ void take(const uint4 *x, uint32_t v, float)
        {
            float largest = -INFINITY;
            vectors_extreme<Element, vectors>(&largest, x);
            if ((largest <= max && best != UINT32_MAX) || nan)
                return;
            nan = largest != largest;
            best = v;
#pragma unroll
            for (uint32_t i = vectors * Element::per_vector; i-- > 0;) {
                const float element = Element::load(vector_element<typename Element::stored>(x[i / Element::per_vector], (int)(i % Element::per_vector)));
                if (nan ? element != element : element == largest)
                    max = element, at = i;
            }
        }
        template <uint32_t members> __device__ __forceinline__ float end() const
        {
            float all_max = max;
            if constexpr (members > 1)
                lanes_share(&all_max, members, take_larger());
            return all_max;
        }
        static __device__ __forceinline__ void close(typename Partial::type *, enum terms) {}
    };
    template <class Row, class Item> static __device__ __forceinline__ uint32_t place(const Row &row, const Item &, float max)
    {
        constexpr uint32_t count = Element::per_vector, lanes = 32;
        const bool here = row.best != UINT32_MAX && (max != max ? row.nan : row.max == max);
        uint32_t place = here ? (row.best + row.at / count * lanes) * count + row.at % count : UINT32_MAX;
        lanes_share(&place, lanes, [](uint32_t *a, uint32_t b) { *a = b < *a ? b : *a; });
        return place;
    }
    template <class Row> static __device__ __forceinline__ uint32_t column_place(const Row &row, uint32_t members)
    {
        return row.best == UINT32_MAX ? UINT32_MAX : row.best + row.at * members;
    }
    template <class Row>
    static __device__ __forceinline__ typename Partial::type of(const Row &, const row_vectors<Element, true> &elements, float max, uint32_t place, uint64_t first)
    {
        typename Partial::type partial = Partial::fold::identity();
        if (max != max) {
            partial.nans = 1;
            partial.nan_index = first + place;
        } else if (place != UINT32_MAX) { /* the lane may have another zero */
            partial.value = max == 0.0f && elements.x != nullptr ? Element::load(elements.element(place)) : max;
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
