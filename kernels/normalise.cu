/* The second pass of softmax, of a whole array as of one row.

     normalise_vectors   rows whose elements lie side by side
         each thread: loads its vectors of a part of a row; the row's constants; stores the results
     normalise_columns   columns, if x and y are of one type
         each thread: the constants of its columns; some rows at a time: loads vectors, or words, of a part of them, stores the results
     normalise_elements  all others
         each thread: takes elements of one row in turns with its group, side by side in memory with its neighbours

   Blocks go backwards: the first pass ended there, and left the last elements in the second-level cache. In place, the thread that writes an
   element has read it before, and no other thread touches it. */
#include "kernels/axis_element.cuh"
#include "kernels/axis_softmax.cuh"
#include "kernels/columns.cuh"
#include "kernels/kernels.h"
#include "kernels/softmax.cuh"

/* How columns, and elements of any type, are cut: a block's threads are members of groups, and a group has one row, or words of columns. */
struct pass_cut {
    struct softmax_work work;
    uint64_t results, splits, chunk;
    uint32_t groups, members;
    bool columns;
};

/* side: 0, or of columns, how many groups lie side by side in a block, at most. */
static struct pass_cut pass_cut_of(const struct softmax_work *work, uint64_t results, uint32_t side, int multiprocessors)
{
    const uint64_t length = work->box.length;
    struct pass_cut cut = {*work, results, 1, length, 1, 1, side > 0};
    while (cut.groups < side && cut.groups < cut.results)
        cut.groups *= 2;
    while (cut.groups * cut.members < AXIS_SHAPE.threads && cut.members < length)
        cut.members *= 2;
    while (cut.groups * cut.members < AXIS_SHAPE.threads && cut.groups < cut.results)
        cut.groups *= 2;
    const uint64_t blocks = (cut.results + cut.groups - 1) / cut.groups, wanted = (uint64_t)multiprocessors * AXIS_SHAPE.blocks;
    const uint64_t splits = u64_min(u64_max(1, 4 * wanted / blocks), (length + cut.members - 1) / cut.members);
    cut.chunk = ((length + splits - 1) / splits + cut.members - 1) / cut.members * cut.members;
    cut.splits = (length + cut.chunk - 1) / cut.chunk;
    return cut;
}

template <class Constants>
static cudaError_t cut_start(void (*kernel)(const struct pass_cut, const Constants), const struct pass_cut *cut, const Constants &constants, cudaStream_t stream)
{
    const uint64_t blocks = (cut->results + cut->groups - 1) / cut->groups * cut->splits;
    const cudaLaunchConfig_t config = launch_config(blocks, (int)(cut->groups * cut->members), stream);
    return blocks > INT32_MAX ? cudaErrorInvalidValue : cudaLaunchKernelEx(&config, kernel, *cut, constants);
}

/* ---- vectors */

/* The elements first ... end - 1 of x that are in vector v; the others of it are -inf, whose results are NaN only if all of the row are. */
template <class Element> static __device__ __forceinline__ uint4 vector_of_part(const typename Element::stored *x, uint64_t v, uint64_t first, uint64_t end)
{
    typedef typename Element::stored stored;
    const stored least = vector_element<stored>(least_vector<Element>(), 0);
    stored elements[Element::per_vector];
#pragma unroll
    for (uint32_t i = 0; i < Element::per_vector; i++) {
        const uint64_t at = v * Element::per_vector + i;
        elements[i] = at >= first && at < end ? x[at] : least;
    }
    return vector_of(elements);
}

/* The arithmetic of a row as it is defined. */
template <class Element, bool logarithm> struct row_second {
    static constexpr enum pass_cost cost = logarithm || sizeof(typename Element::value) == 8 ? PASS_WIDE : sizeof(typename Element::stored) == 2 ? PASS_MUCH : PASS_LITTLE;
    typedef typename Element::stored stored;
    typedef softmax_arithmetic<Element, logarithm> arithmetic;
    struct softmax_constants c;
    row_second() = default;
    __device__ __forceinline__ row_second(const softmax_constants &constants) : c(constants) {}
    __device__ __forceinline__ uint4 of(const uint4 &x) const { return vector_softmax<arithmetic, Element>(x, c); }
    /* Of elements of `count` columns, one each. */
    template <int count> static __device__ __forceinline__ uint4 across(const row_second *columns, const uint4 &x)
    {
        stored y[Element::per_vector] = {};
#pragma unroll
        for (int i = 0; i < count; i++)
            round_to(&y[i], element_softmax<arithmetic, Element>(vector_element<stored>(x, i), columns[i].c));
        return vector_of(y);
    }
};

/* Results of 16 bits at level fast: 2^((x - max) log2 e - log2 of the sum), in f32, and by a GPU's own exp2. Up by 2^24, so that no result
   is flushed to 0. */
template <class Element> struct row_second_short {
    static constexpr enum pass_cost cost = PASS_LITTLE;
    float max, log, unit; /* unit: negative if softmax is scaled by a negative number */
    row_second_short() = default;
    __device__ __forceinline__ row_second_short(const softmax_constants &c)
        : max((float)c.max), log((float)(24.0 - c.log_sum * 0x1.71547652b82fep0)), unit(c.inverse_high < 0.0 ? -0x1p-24f : 0x1p-24f)
    {
    }
    __device__ __forceinline__ float result(const uint4 &x, int i) const
    {
        return exp2_short(fmaf(Element::load(vector_element<typename Element::stored>(x, i)) - max, 0x1.715476p0f, log)) * unit;
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            words[i] = round_two<Element>(result(x, 2 * i), result(x, 2 * i + 1));
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
    template <int count> static __device__ __forceinline__ uint4 across(const row_second_short *columns, const uint4 &x)
    {
        uint32_t words[4] = {};
#pragma unroll
        for (int i = 0; i < count; i += 2)
            words[i / 2] = round_two<Element>(columns[i].result(x, i), columns[i + 1].result(x, i + 1));
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
};

/* Rows are cut into parts, of some vectors of each of a block's threads. Of rows that are less than a part a block has several: each has
   2^bits threads. Vectors are those of memory: what a row has of its first and of its last one is loaded and stored an element at a time, if that is not all. */
struct vectors_cut {
    struct softmax_work work;
    uint32_t bits;
    bool parts; /* a row has some, which follow one another along x of the grid, and rows along y and z; else rows are along x */
};

template <class Arithmetic, class Element>
constexpr struct pass_shape PASS_OF = pass_shape_of(Arithmetic::cost, sizeof(typename Element::stored));

template <class Arithmetic, class Element>
static __global__ void __launch_bounds__(PASS_OF<Arithmetic, Element>.threads, PASS_OF<Arithmetic, Element>.blocks)
normalise_vectors(const __grid_constant__ struct vectors_cut cut, const __grid_constant__ struct pass_constants constants)
{
    typedef typename Element::stored stored;
    constexpr uint32_t threads = PASS_OF<Arithmetic, Element>.threads, count = PASS_OF<Arithmetic, Element>.vectors, per_vector = Element::per_vector;
    const struct softmax_work &work = cut.work;
    const uint32_t along_x = gridDim.x - 1 - blockIdx.x, rows = threads >> cut.bits, members = 1u << cut.bits, member = threadIdx.x & (members - 1);
    uint64_t r = (cut.parts ? (gridDim.z - 1 - blockIdx.z) * gridDim.y + gridDim.y - 1 - blockIdx.y : along_x) * (uint64_t)rows;
    const stored *x = (const stored *)work.x + r * work.box.outer_stride;
    stored *y = (stored *)work.y + r * work.y_outer_stride;
    if (rows > 1) { /* products of 64 bits of every thread would take long */
        const uint32_t row = threadIdx.x >> cut.bits;
        r += row;
        x += row * work.box.outer_stride;
        y += row * work.y_outer_stride;
    }
    if (r >= work.box.outer)
        return;
    const uint64_t own = (cut.parts ? (uint64_t)along_x * (count * threads) : 0) + member;
    const uint32_t first = elements_before(x);
    const uint64_t end = first + work.box.length, whole = end / per_vector, begin = first > 0;
    x -= first;
    y -= first;
    uint4 taken[count];
#pragma unroll
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t v = own + i * members;
        if (v >= begin && v < whole)
            taken[i] = __ldcs((const uint4 *)x + v);
        else
            taken[i] = vector_of_part<Element>(x, v, first, end);
    }
    const Arithmetic softmax(constants.of_row(r));
    if (!constants.proceed_now()) /* tested after the loads have started */
        return;
#pragma unroll
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t v = own + i * members;
        const uint4 results = softmax.of(taken[i]);
        if (v >= begin && v < whole)
            __stcs((uint4 *)y + v, results);
        else if (v * per_vector < end)
#pragma unroll
            for (uint32_t k = 0; k < per_vector; k++)
                if (v * per_vector + k >= first && v * per_vector + k < end)
                    y[v * per_vector + k] = vector_element<stored>(results, (int)k);
    }
}

template <class Arithmetic, class Element>
static cudaError_t vectors_start(const struct softmax_work *work, const struct pass_constants &constants, cudaStream_t stream)
{
    constexpr uint64_t threads = PASS_OF<Arithmetic, Element>.threads, count = PASS_OF<Arithmetic, Element>.vectors, side = 65535 /* of the grid, at most */;
    const uint64_t vectors = row_vectors_most(work), parts = (vectors + threads * count - 1) / (threads * count);
    struct vectors_cut cut = {*work, 0, parts > 1};
    while (1u << cut.bits < threads && count << cut.bits < vectors)
        cut.bits++;
    const uint64_t rows = threads >> cut.bits, groups = (work->box.outer + rows - 1) / rows;
    cudaLaunchConfig_t config = launch_config(cut.parts ? parts : groups, (int)threads, stream);
    if (cut.parts) {
        config.gridDim.y = (uint32_t)u64_min(groups, side);
        config.gridDim.z = (uint32_t)((groups + side - 1) / side);
    }
    return u64_max(parts, groups) > INT32_MAX ? cudaErrorInvalidValue
                                              : cudaLaunchKernelEx(&config, normalise_vectors<Arithmetic, Element>, cut, constants);
}

/* Calls start with the arithmetic. */
template <class Element, class Start> static cudaError_t with_second(const struct softmax_work *work, const Start &start)
{
    if (work->logarithm)
        return start((const row_second<Element, true> *)nullptr);
    if constexpr (sizeof(typename Element::stored) == 2)
        if (work->level == ALLFOLD_LEVEL_FAST)
            return start((const row_second_short<Element> *)nullptr);
    return start((const row_second<Element, false> *)nullptr);
}

/* ---- columns */

static __device__ __forceinline__ uint4 in_vector(const uint4 &x) { return x; }
static __device__ __forceinline__ uint4 in_vector(uint32_t x) { return make_uint4(x, 0, 0, 0); }
static __device__ __forceinline__ uint4 in_vector(uint64_t x) { return make_uint4((uint32_t)x, (uint32_t)(x >> 32), 0, 0); }

/* Taken: a vector, or the smallest word of whole elements, at least 4 bytes: of columns that lie side by side. */
template <class Taken, class Arithmetic, class Element>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads, COLUMN_PASS_SHAPE.blocks(Arithmetic::cost))
normalise_columns(const __grid_constant__ struct pass_cut cut, const softmax_constants *constants)
{
    constexpr int side = sizeof(Taken) / sizeof(typename Element::stored), rows = 64 / sizeof(Taken);
    const struct softmax_work &work = cut.work;
    const uint32_t block = gridDim.x - 1 - blockIdx.x, of_split = gridDim.x / (uint32_t)cut.splits, split = block / of_split;
    const uint64_t column = (uint64_t)(block % of_split) * cut.groups + threadIdx.x % cut.groups;
    const uint64_t next = (uint64_t)(split + 1) * cut.chunk, end = next < work.box.length ? next : work.box.length, member = threadIdx.x / cut.groups;
    if (column >= cut.results)
        return;
    Arithmetic softmax[side];
#pragma unroll
    for (int i = 0; i < side; i++)
        softmax[i] = Arithmetic(constants[column * side + i]);
    const uint64_t first = split * cut.chunk + member, x_step = cut.members * (work.box.axis_stride / side), y_step = cut.members * (work.y_axis_stride / side);
    const Taken *x = (const Taken *)work.x + column_at(work.box, work.box.outer_stride, column, side) + first * (work.box.axis_stride / side);
    Taken *y = (Taken *)work.y + column_at(work.box, work.y_outer_stride, column, side) + first * (work.y_axis_stride / side);
#pragma unroll 1
    for (int64_t left = (int64_t)(end - first); left > 0; left -= rows * cut.members) {
        Taken taken[rows] = {};
#pragma unroll
        for (int i = 0; i < rows; i++, x += x_step)
            if (i * (int64_t)cut.members < left)
                taken[i] = __ldcs(x);
#pragma unroll
        for (int i = 0; i < rows; i++, y += y_step) {
            const uint4 results = Arithmetic::template across<side>(softmax, in_vector(taken[i]));
            if (i * (int64_t)cut.members < left)
                __stcs(y, vector_element<Taken>(results, 0));
        }
    }
}

/* Columns of x and y of one type, in whole vectors or words. */
template <class Taken, class Element>
static cudaError_t columns_start(const struct softmax_work *work, const softmax_constants *constants, int multiprocessors, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t side = sizeof(Taken) / sizeof(typename Element::stored);
    struct softmax_work turned = *work;
    columns_turn(&turned);
    if (turned.box.inner == 1 || !columns_come_in(&turned, side))
        return cudaSuccess;
    *launched = true;
    const struct pass_cut cut = pass_cut_of(&turned, turned.box.outer * turned.box.inner / side, COLUMN_PASS_SHAPE.across / sizeof(Taken), multiprocessors);
    return with_second<Element>(work, [&](auto *second) {
        return cut_start(normalise_columns<Taken, std::remove_const_t<std::remove_pointer_t<decltype(second)>>, Element>, &cut, constants, stream);
    });
}

/* ---- elements */

template <class Arithmetic, class Value>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
normalise_elements(const __grid_constant__ struct pass_cut cut, const __grid_constant__ struct pass_constants constants)
{
    const struct softmax_work &work = cut.work;
    const struct box &box = work.box;
    const uint32_t group = cut.columns ? threadIdx.x % cut.groups : threadIdx.x / cut.members;
    const uint32_t member = cut.columns ? threadIdx.x / cut.groups : threadIdx.x % cut.members;
    const uint32_t block = gridDim.x - 1 - blockIdx.x, splits = (uint32_t)cut.splits, split = block % splits;
    const uint64_t r = (uint64_t)(block / splits) * cut.groups + group;
    if (r >= cut.results)
        return;
    const softmax_constants c = constants.of_row(r);
    const uint64_t next = (split + 1) * cut.chunk, end = next < box.length ? next : box.length, o = r / box.inner, i = r % box.inner;
    const uint64_t first = split * cut.chunk + member, x_step = cut.members * box.axis_stride, y_step = cut.members * work.y_axis_stride;
    uint64_t x_at = o * box.outer_stride + i + first * box.axis_stride, y_at = o * work.y_outer_stride + i + first * work.y_axis_stride;
    constexpr int flight = 32 / sizeof(Value);
#pragma unroll 1
    for (int64_t left = (int64_t)(end - first); left > 0; left -= flight * cut.members, x_at += flight * x_step, y_at += flight * y_step) {
        Value values[flight] = {};
        with_element_of<Value>(work.x_type, [&](auto element) {
            typedef decltype(element) Element;
            const auto *const x = (const typename Element::stored *)work.x + x_at;
#pragma unroll
            for (int k = 0; k < flight; k++)
                if (k * (int64_t)cut.members < left)
                    values[k] = Element::load(x[k * x_step]);
        });
        typename Arithmetic::value results[flight];
#pragma unroll
        for (int k = 0; k < flight; k++)
            results[k] = Arithmetic::of((typename Arithmetic::value)values[k], c);
        switch (work.y_type) {
#define CASE(ID, name, ...)                                                                       \
    case ALLFOLD_##ID:                                                                            \
        if constexpr (sizeof(element_##name) <= sizeof results[0]) /* f32 makes no f64 of it */   \
            _Pragma("unroll") for (int k = 0; k < flight; k++) if (k * (int64_t)cut.members < left) \
                round_to((element_##name *)work.y + y_at + k * y_step, results[k]);               \
        break;
            FLOAT_TYPES(CASE)
#undef CASE
        default: break;
        }
    }
}

template <class Arithmetic, class Value>
static cudaError_t pass_start(const struct pass_cut *cut, const struct pass_constants &constants, cudaStream_t stream)
{
    return cut_start(normalise_elements<Arithmetic, Value>, cut, constants, stream);
}

/* The arithmetic follows from the types as on the CPU. */
template <class Value> static cudaError_t value_start(const struct pass_cut *cut, const struct pass_constants &constants, cudaStream_t stream)
{
    if (cut->work.logarithm)
        return pass_start<log_softmax_in_f64, Value>(cut, constants, stream);
    if constexpr (std::is_same<Value, float>::value) {
        if (cut->work.y_type == ALLFOLD_F32)
            return pass_start<softmax_in_f32, Value>(cut, constants, stream);
        if (cut->work.y_type != ALLFOLD_F64)
            return pass_start<softmax_short_in_f32, Value>(cut, constants, stream);
    }
    return pass_start<softmax_in_f64, Value>(cut, constants, stream);
}

static cudaError_t elements_start(const struct softmax_work *work, const struct pass_constants &constants, int multiprocessors, cudaStream_t stream)
{
    const struct box *const box = &work->box;
    const bool columns = box->inner > 1 || (box->outer_stride == 1 && box->axis_stride != 1);
    const struct pass_cut cut = pass_cut_of(work, box->outer * box->inner, columns ? AXIS_SHAPE.threads : 0, multiprocessors);
    switch (type_value(work->x_type)) {
#define CASE(nothing, value)  \
    case VALUE_##value: \
        return value_start<value_##value>(&cut, constants, stream);
        VALUES(CASE, )
#undef CASE
    case VALUE_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t second_pass_start(const struct softmax_work *work, const struct pass_constants &constants, int multiprocessors, cudaStream_t stream)
{
    bool launched = false;
    if (!type_is_floating(work->y_type))
        return cudaErrorInvalidValue;
    if (work->box.outer * work->box.length * work->box.inner == 0)
        return cudaSuccess;
    const cudaError_t code = work->x_type != work->y_type ? cudaSuccess : with_element(work->x_type, [&](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating) {
            if (row_vectors_most(work) == 0) {
                const cudaError_t wide = columns_start<uint4, Element>(work, constants.of, multiprocessors, stream, &launched);
                return launched ? wide : columns_start<typename column_words<Element>::word, Element>(work, constants.of, multiprocessors, stream, &launched);
            }
            launched = true;
            return with_second<Element>(work, [&](auto *second) {
                return vectors_start<std::remove_const_t<std::remove_pointer_t<decltype(second)>>, Element>(work, constants, stream);
            });
        }
        return cudaSuccess;
    });
    return code != cudaSuccess || launched ? code : elements_start(work, constants, multiprocessors, stream);
}

cudaError_t second_pass_load(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, normalise_vectors<row_second<element<ALLFOLD_F32>, false>, element<ALLFOLD_F32>>);
}

int normalise_launch(const struct softmax_work *work, const struct softmax_constants *constants, const struct softmax_constants *given, int multiprocessors,
                     void *stream)
{
    struct pass_constants pass = {constants, nullptr, {}};
    if (constants == nullptr)
        pass.given = *given;
    return second_pass_start(work, pass, multiprocessors, (cudaStream_t)stream);
}
