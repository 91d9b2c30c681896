/* Body of axis_VALUE.cu: every fold along an axis of elements whose value type is FAMILY. */
#include "kernels/axis_finish.cuh"

#include "kernels/axis_kernels.cuh"
#include "kernels/axis_family.h"

static struct axis_block block_with(uint32_t groups, uint32_t members, bool columns)
{
    struct axis_block block = {groups, members, 0, columns};
    while (1u << block.low_bits < (columns ? groups : members))
        block.low_bits++;
    return block;
}

/* Whether the fold has little code: of exact sums that which is tried first. */
template <class Axis> static bool is_light(bool quick)
{
    if constexpr (Axis::tries)
        return quick && Axis::quick::is_light;
    else
        return Axis::is_light;
}
/* Whether it takes rows in the vectors of memory. */
template <class Axis> static bool is_framed(bool quick)
{
    if constexpr (Axis::tries)
        return quick && Axis::quick::is_framed;
    else
        return Axis::is_framed;
}
/* The length of a row with what lies before it in its first vector. */
static uint64_t framed_length(const struct axis_cut &cut) { return cut.box.length + (cut.framed ? 15 : 0); }

/* log2 of how many columns a thread takes: as many as share a word, if all words are whole, and enough threads are left. */
static int side_bits_of(const struct axis_cut &cut, const void *x, int multiprocessors)
{
    const struct box &box = cut.box;
    const int bits = box.inner > 1 && cut.bytes_bits < 2 ? 2 - cut.bytes_bits : 0;
    const uint64_t steps = box.axis_stride | (box.outer > 1 ? box.outer_stride | box.inner : 0);
    const bool are_whole = (uintptr_t)x % 4 == 0 && ((steps | cut.from | cut.results) & ((1u << bits) - 1)) == 0;
    const uint64_t groups = cut.results >> bits, splits = u64_max(1, box.length / (uint64_t)(AXIS_SHAPE.tile * AXIS_SHAPE.least));
    return are_whole && groups >= 32 && groups * splits >= (uint64_t)multiprocessors * AXIS_SHAPE.blocks * AXIS_SHAPE.threads ? bits : 0;
}

/* The block for that number of results, of `tiles` tiles each. A member of a row has axis_rounds tiles, because combining members takes time, or
   fewer if there are too few threads otherwise. Of rows that are folded quickly blocks are small, if there are enough: while one combines, others load. whole: columns
   are not split. */
template <class Axis> static struct axis_block block_of(uint64_t results, uint64_t tiles, bool columns, bool quick, bool whole, int multiprocessors)
{
    typedef axis_plan<Axis> plan;
    const uint64_t rounds = axis_rounds(Axis::cost, Axis::words > 0 && !quick, tiles);
    const bool light = is_light<Axis>(quick);
    const uint64_t enough = (uint64_t)multiprocessors * AXIS_SHAPE.blocks * plan::threads;
    const uint32_t groups = quick ? plan::threads : plan::groups;
    uint32_t side_by_side = power_up(results, groups);
    const auto least = whole_columns_of(Axis::cost);
    if (quick && whole)
        while (side_by_side > least.side && results * plan::threads < enough * side_by_side && tiles * side_by_side >= 2 * least.tiles * plan::threads)
            side_by_side /= 2;
    if (columns)
        return block_with(side_by_side, power_up(tiles, plan::threads / side_by_side), true);
    const uint32_t small = plan::threads / (light ? 2 : 1), all = results * small >= enough ? small : plan::threads;
    uint32_t members = power_up((tiles + rounds - 1) / rounds, all);
    while (members < all && members < tiles && results * members < enough)
        members *= 2;
    const uint32_t most = all / members;
    return block_with(power_up(results, most < groups ? most : groups), members, false);
}

static uint32_t power_down(uint64_t x, uint32_t most)
{
    const uint32_t power = power_up(x, most);
    return power > x ? power / 2 : power;
}

/* Lines of a stage: whole planes, or columns of one. */
static bool stage_planes(struct axis_cut *cut, size_t longest, uint64_t wanted, uint32_t threads)
{
    const struct box &box = cut->box;
    const uint64_t plane = box.length * box.inner, bytes = plane << cut->bytes_bits;
    struct axis_stage *const stage = &cut->stage;
    if (box.axis_stride != box.inner || bytes > longest)
        return false;
    stage->merged = box.outer_stride == plane || box.outer == 1;
    stage->line_bytes = box.outer_stride << cut->bytes_bits;
    stage->pitch = (uint32_t)(stage->merged ? bytes : (bytes + 15 + 15) / 16 * 16);
    stage->planes = (uint32_t)u64_min(AXIS_SHAPE.stage_bytes / stage->pitch, u64_max(1, box.outer / wanted));
    if (box.inner == 1)
        stage->planes = stage->planes >= threads ? stage->planes / threads * threads : power_down(stage->planes, threads);
    stage->rows = stage->planes * (uint32_t)box.inner;
    stage->quads = cut->aligned && box.length % STAGE_TILE == 0;
    return true;
}
static bool stage_columns(struct axis_cut *cut, uint64_t wanted, uint32_t threads)
{
    const struct box &box = cut->box;
    const uint64_t most = AXIS_SHAPE.stage_bytes / box.length, least = STAGED_COLUMNS.least;
    struct axis_stage *const stage = &cut->stage;
    if (box.inner < least || box.length > STAGED_COLUMNS.length)
        return false;
    const uint64_t fit = (most - 16) >> cut->bytes_bits, fair = u64_max(box.outer * box.inner / wanted, least);
    stage->rows = (uint32_t)u64_min(fit, fair);
    stage->rows = stage->rows >= threads ? stage->rows / threads * threads : power_down(stage->rows, threads);
    stage->plane_cuts = (uint32_t)((box.inner + stage->rows - 1) / stage->rows);
    stage->pitch = (stage->rows << cut->bytes_bits) + 16;
    stage->line_bytes = box.axis_stride << cut->bytes_bits;
    return true;
}

/* Stages the elements of short rows, if they fit. */
static void cut_stage(struct axis_cut *cut, size_t longest, int multiprocessors, uint32_t threads)
{
    const struct box &box = cut->box;
    const uint64_t wanted = 2 * (uint64_t)multiprocessors;
    if (cut->results != box.outer * box.inner || box.length == 0 || box.length > longest)
        return;
    if (!stage_planes(cut, longest, wanted, threads) && !stage_columns(cut, wanted, threads))
        return;
    const struct axis_stage &stage = cut->stage;
    const uint32_t groups = power_up(stage.rows, threads), vectors = (stage.merged ? stage.planes * stage.pitch : stage.pitch) / 16;
    cut->block = block_with(groups, threads / groups, box.inner > 1);
    cut->splits = 1;
    cut->chunk = box.length;
    cut->stage.bytes_bits = cut->bytes_bits;
    cut->stage.wide_bits = 4;
    while (1u << cut->stage.wide_bits < vectors && 1u << cut->stage.wide_bits < threads)
        cut->stage.wide_bits++;
}

/* How many blocks the results take. */
static uint64_t blocks_of(const struct axis_cut &cut) { return (cut.results + cut.rows - 1) / cut.rows; }

constexpr size_t AXIS_MARKS_PART = 16; /* of the memory for partials, one part is for the marks of rows that splits without words could not finish */

/* Cuts rows into splits for blocks that wait for work, whose partials have that stride, and `bytes` bytes in all. */
static void cut_splits(struct axis_cut *cut, uint64_t stride, size_t bytes, int multiprocessors)
{
    const uint64_t tile = AXIS_SHAPE.tile, length = framed_length(*cut), wanted = (uint64_t)multiprocessors * AXIS_SHAPE.blocks;
    const uint64_t least = tile * cut->block.members * AXIS_SHAPE.least, room = bytes / (cut->results * stride);
    uint64_t splits = u64_min(u64_max(1, wanted / blocks_of(*cut)), u64_max(1, length / least));
    splits = u64_max(1, u64_min(u64_max(splits, length >> AXIS_CHUNK_BITS), room));
    cut->chunk = u64_max(tile, ((length + splits - 1) / splits + tile - 1) / tile * tile);
    cut->splits = u64_max(1, (length + cut->chunk - 1) / cut->chunk);
    cut->stride = stride;
}

/* Elements of a row lie side by side, or those of neighbouring rows do: then as many groups as possible stand side by side. tries: exact sums without words, too. */
template <class Axis> static struct axis_cut axis_cut_of(const struct axis_work *work, struct range rows, bool tries, int multiprocessors)
{
    typedef axis_plan<Axis> plan;
    const size_t bytes = allfold_type_bytes(work->type);
    const uint64_t tile = AXIS_SHAPE.tile;
    struct axis_cut cut = {};
    cut.box = work->box;
    if (cut.box.inner == 1 && cut.box.outer_stride == 1 && cut.box.axis_stride != 1) {
        cut.box.inner = cut.box.outer;
        cut.box.outer = 1;
    }
    cut.type = work->type;
    while ((size_t)1 << cut.bytes_bits < bytes)
        cut.bytes_bits++;
    cut.from = rows.first;
    cut.results = rows.count;
    cut.first = work->first;
    cut.finishes = work->finish != nullptr;
    if (cut.finishes)
        cut.finish = *work->finish;
    cut.aligned = cut.box.axis_stride == 1 && (uintptr_t)work->x % 16 == 0 && cut.box.inner == 1
                  && (cut.box.outer == 1 || cut.box.outer_stride * bytes % 16 == 0);
    const auto block_up = [&](bool whole) {
        cut.framed = is_framed<Axis>(cut.quick) && !cut.aligned && cut.box.axis_stride == 1 && cut.box.inner == 1;
        const int bits = is_light<Axis>(cut.quick) ? side_bits_of(cut, work->x, multiprocessors) : 0;
        cut.block = block_of<Axis>(cut.results >> bits, (cut.box.length + tile - 1) / tile, cut.box.inner > 1, cut.quick, whole, multiprocessors);
        cut.rows = cut.block.groups << bits;
    };
    block_up(false);
    cut_splits(&cut, PARTIAL_STRIDE<typename Axis::whole>, work->bytes, multiprocessors);
    size_t staged_bytes = Axis::staged_bytes;
    if constexpr (Axis::tries) {
        typedef typename Axis::quick quick;
        const bool doubles_round = quick::in_doubles && bytes == 4;
        const bool fills = cut.box.inner > 1 && cut.results >> (is_light<Axis>(true) ? side_bits_of(cut, work->x, multiprocessors) : 0)
                                                    >= (uint64_t)multiprocessors * whole_columns_of(Axis::cost).enough(cut.box.length);
        const bool can_mark = quick::can_split && cut.finishes && work->finish->uncertain != nullptr
                              && cut.results * sizeof *cut.again <= work->bytes / AXIS_MARKS_PART;
        const bool is_long = quick::is_light && cut.box.length >= AXIS_SHAPE.apart, fits = (cut.splits == 1 || fills) && cut.box.length <= AXIS_SHAPE.quick;
        const bool apart = can_mark && (is_long || (cut.splits > 1 && !fits));
        cut.quick = tries && cut.finishes && rows.count == work->box.outer * work->box.inner && (fits || apart);
        cut.apart = cut.quick && apart;
        if (cut.quick)
            block_up(!apart);
        if (cut.quick && !apart) {
            cut.splits = 1;
            cut.chunk = u64_max(cut.chunk, framed_length(cut));
            staged_bytes = quick::staged_bytes;
        } else if (cut.quick) {
            cut_splits(&cut, doubles_round ? PARTIAL_STRIDE<typename Axis::pairs::whole> : PARTIAL_STRIDE<typename Axis::splits::whole>, work->bytes / 2, multiprocessors);
            cut.in_pairs = doubles_round;
        }
    }
    if (staged_bytes > 0)
        cut_stage(&cut, staged_bytes, multiprocessors, plan::threads);
    if (cut.stage.rows > 0)
        cut.rows = cut.block.groups;
    cut.word_block = cut.block;
    if (cut.block.groups > (uint32_t)plan::groups)
        cut.word_block = block_with(plan::groups, cut.block.groups * cut.block.members / plan::groups, cut.block.columns);
    return cut;
}

template <class Axis>
static cudaError_t combine_start(unsigned char *partials, const struct axis_cut &cut, cudaStream_t stream, const struct axis_parts &parts = {})
{
    constexpr uint32_t threads = axis_plan<Axis>::threads;
    const uint32_t members = power_up(u64_max(cut.splits, Axis::words > 0 ? Axis::words : 1), threads);
    const struct axis_block block = block_with(threads / members, members, false);
    const cudaLaunchConfig_t config = launch_config((cut.results + block.groups - 1) / block.groups, threads, stream);
    return cudaLaunchKernelEx(&config, axis_combine<Axis>, partials, cut, block, parts);
}

/* Combines the splits of each result in the first, and finishes the results, if they are wanted. done: those of one split are finished. */
template <class Axis>
static cudaError_t splits_start(unsigned char *partials, const struct axis_cut &cut, bool done, cudaStream_t stream, const struct axis_parts &parts = {})
{
    cudaError_t code = cut.splits > 1 || (!done && cut.finishes) ? combine_start<Axis>(partials, cut, stream, parts) : cudaSuccess;
    if constexpr (Axis::words > 0)
        if (code == cudaSuccess && cut.finishes && !cut.quick) {
            const cudaLaunchConfig_t last = launch_config((cut.results + AXIS_SHAPE.threads - 1) / AXIS_SHAPE.threads, AXIS_SHAPE.threads, stream);
            code = cudaLaunchKernelEx(&last, words_finish<Axis>, (const unsigned char *)partials, cut);
        }
    return code;
}

/* Bytes of shared memory that a launch of axis_fold gets. */
template <class Axis> static size_t room_of(const struct axis_cut &cut)
{
    typedef axis_plan<Axis> plan;
    const size_t words = Axis::words > 0 && !cut.apart ? sizeof(int64_t) * plan::row_words * cut.word_block.groups : 0;
    return u64_max(cut.stage.rows > 0 ? AXIS_SHAPE.stage_bytes + 128 : 0, u64_max(plan::tiles_bytes, words));
}

/* Whether rows are split that are folded without words. */
template <class Axis> constexpr bool can_split()
{
    if constexpr (Axis::tries)
        return Axis::quick::can_split;
    return false;
}

/* Folds cut.results rows from cut.from on. */
template <class Axis> static cudaError_t rows_start(const struct axis_work *work, const struct axis_cut &cut, cudaStream_t stream)
{
    unsigned char *const partials = (unsigned char *)work->partials;
    const uint64_t blocks = cut.stage.planes > 0 ? (cut.box.outer + cut.stage.planes - 1) / cut.stage.planes
                            : cut.stage.rows > 0 ? cut.box.outer * cut.stage.plane_cuts
                                                 : blocks_of(cut) * cut.splits;
    cudaLaunchConfig_t config = launch_config(blocks, (int)u64_max(cut.block.groups * cut.block.members, 32), stream);
    config.dynamicSmemBytes = room_of<Axis>(cut);
    cudaError_t code = blocks > INT32_MAX ? cudaErrorInvalidValue : cudaSuccess;
    void (*kernel)(const void *, const struct axis_cut, unsigned char *) = axis_fold<Axis>;
    if constexpr (Axis::is_light)
        kernel = cut.rows > cut.block.groups ? axis_columns<Axis> : kernel;
    if constexpr (can_split<Axis>()) {
        typedef typename Axis::splits splits;
        typedef typename Axis::pairs pairs;
        if (cut.apart) {
            code = code != cudaSuccess ? code : cudaLaunchKernelEx(&config, cut.in_pairs ? axis_splits<pairs> : axis_splits<splits>, work->x, cut, partials);
            return code != cudaSuccess ? code : cut.in_pairs ? combine_start<pairs>(partials, cut, stream) : combine_start<splits>(partials, cut, stream);
        }
        kernel = cut.again != nullptr ? axis_again<Axis> : kernel;
    }
    if (code == cudaSuccess)
        code = cudaLaunchKernelEx(&config, kernel, work->x, cut, partials);
    if (cut.quick)
        return code;
    return code != cudaSuccess ? code : splits_start<Axis>(partials, cut, true, stream);
}

/* The partials of `parts` pieces of each result take the place of splits. */
template <class Axis> static cudaError_t parts_start(const struct axis_work *work, uint64_t parts, cudaStream_t stream)
{
    struct axis_cut cut = {};
    cut.results = work->box.outer * work->box.inner;
    cut.splits = parts;
    cut.stride = PARTIAL_STRIDE<typename Axis::whole>;
    cut.finishes = work->finish != nullptr;
    if (cut.finishes)
        cut.finish = *work->finish;
    return splits_start<Axis>((unsigned char *)work->partials, cut, false, stream,
                              {(const unsigned char *)work->window.memory, work->window.step, work->window.own});
}

/* Words are finished from memory, which has room for some results at a time. If splits are tried without words, marks are at its end. Of rows that have one, words
   come where the partials of the splits were. */
template <class Axis> static cudaError_t axis_start(const struct axis_work *work, int multiprocessors, cudaStream_t stream)
{
    const uint64_t results = work->box.outer * work->box.inner;
    struct axis_work own = *work;
    struct axis_cut cut = {};
    uint32_t *again = nullptr;
    cudaError_t code = cudaSuccess;
    if constexpr (Axis::tries) {
        if (results > 0)
            cut = axis_cut_of<Axis>(work, {0, results}, true, multiprocessors);
        if (cut.apart) {
            own.bytes = work->bytes - work->bytes / AXIS_MARKS_PART;
            cut.again = again = (uint32_t *)((char *)work->partials + own.bytes);
        }
        if (cut.quick && !work->finish->by_words)
            return rows_start<Axis>(work, cut, stream);
    }
    const uint64_t most = Axis::words > 0 && work->finish != nullptr ? u64_max(1, own.bytes / PARTIAL_STRIDE<typename Axis::whole>) : results;
    for (uint64_t from = 0; from < results && code == cudaSuccess; from += most) {
        cut = axis_cut_of<Axis>(&own, {from, u64_min(most, results - from)}, false, multiprocessors);
        cut.again = again;
        code = rows_start<Axis>(&own, cut, stream);
    }
    return code;
}

#define CHECK_2(name, value_name) /* not along an axis */
#define CHECK_1(name, value_name)                                                                                           \
    static_assert(sizeof(axis_words<exact_of<MONOID_##name, value_##value_name>>::whole) == sizeof(name##_##value_name), \
                  "the layout of " #name);
#define CHECKS(name, values, operands, ...) VALUES_##values(CHECK_##operands, name)
WORD_MONOIDS(CHECKS)
#undef CHECK_1
#undef CHECK_2
#undef CHECKS

int FN_EXPAND(axis_launch, FAMILY)(const struct axis_work *work, int multiprocessors, void *stream)
{
    return with_axis<FN_EXPAND(value, FAMILY)>(work->monoid, [=](auto axis) {
        return axis_start<typename decltype(axis)::type>(work, multiprocessors, (cudaStream_t)stream);
    });
}

int FN_EXPAND(axis_parts_launch, FAMILY)(const struct axis_work *work, uint64_t parts, void *stream)
{
    return with_axis<FN_EXPAND(value, FAMILY)>(
        work->monoid, [=](auto axis) { return parts_start<typename decltype(axis)::type>(work, parts, (cudaStream_t)stream); });
}
