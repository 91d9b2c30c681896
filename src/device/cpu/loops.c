/* The CPU backend's inner loops, compiled once for each instruction set (CPU_ISA). Elements are brought to their value
   type a piece at a time, in the first-level cache, where they are not in it already. */
#include "device/cpu/loops.h"
#include "device/cpu/transpose.h"
#include "fold/columns.h" /* so that folds.h defines the folds of columns, too */
#include "fold/folds.h"
#include "fold/softmax_constants.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

enum { PIECE = 1024, PIECE_EXACT = 4096 };
static const uint32_t pieces[MONOID_COUNT] = {
#define ROW(monoid, ...) [MONOID_##monoid] = PIECE,
    STRUCT_MONOIDS(ROW)
#undef ROW
#define ROW(monoid, ...) [MONOID_##monoid] = PIECE_EXACT,
    WORD_MONOIDS(ROW) WEIGHTED_MONOIDS(ROW)
#undef ROW
};

/* x[0 .. n) as values, or as f64. */
typedef void convert_function(void *values, const void *x, uint32_t n);
#define ROW(ID, name, numpy, bytes, kind, value)                                  \
    static void values_of_##name(void *values, const void *x, uint32_t n)        \
    {                                                                             \
        for (uint32_t i = 0; i < n; i++)                                          \
            ((value_##value *)values)[i] = load_##name(((const element_##name *)x)[i]); \
    }                                                                             \
    static void f64_of_##name(void *values, const void *x, uint32_t n)            \
    {                                                                             \
        for (uint32_t i = 0; i < n; i++)                                          \
            ((double *)values)[i] = (double)load_##name(((const element_##name *)x)[i]); \
    }
ALLFOLD_TYPES(ROW)
#undef ROW

static const struct {
    size_t element_bytes, value_bytes;
    convert_function *values, *f64;
} types[ALLFOLD_TYPE_COUNT] = {
#define ROW(ID, name, numpy, bytes, kind, value) [ALLFOLD_##ID] = {bytes, sizeof(value_##value), values_of_##name, f64_of_##name},
    ALLFOLD_TYPES(ROW)
#undef ROW
};

/* What the tile functions of a monoid take: values, or f64 if its terms are. Exponentials are so long that one function does for all
   value types. */
struct conversion {
    enum value value;
    size_t bytes;              /* of a value */
    convert_function *convert; /* NULL: elements are such values already */
};
static struct conversion conversion_of(enum monoid monoid, allfold_type type)
{
    if (monoid_facts[monoid].terms == TERMS_F64)
        return (struct conversion){VALUE_f64, sizeof(double), type == ALLFOLD_F64 ? NULL : types[type].f64};
    const bool same = types[type].element_bytes == types[type].value_bytes;
    return (struct conversion){type_value(type), types[type].value_bytes, same ? NULL : types[type].values};
}
#define TILES_NONE(X, values, monoid) VALUES_##values(X, monoid)
#define TILES_F32 TILES_NONE
#define TILES_SHORT TILES_NONE
#define TILES_QUICK TILES_NONE
#define TILES_F64(X, values, monoid) VALUES_F64(X, monoid)

/* y is NULL unless the monoid has two operands; rule is that of a comparison. */
struct tile_operands {
    const void *x, *y;
    const struct compare_rule *rule;
};
typedef void tile_function(void *partial, const struct tile_operands *operands, const struct range *range);
#define DEFINE(monoid, value, ARRAYS)                                                                              \
    static void tile_##monoid##_##value(void *partial, const struct tile_operands *operands, const struct range *range) \
    {                                                                                                              \
        monoid##_tile_##value(partial, ARRAYS, (uint32_t)range->count, range->first);                              \
    }
#define DEFINE_1(monoid, value) DEFINE(monoid, value, operands->x)
#define DEFINE_2(monoid, value) DEFINE(monoid, value, ((arrays_##value){operands->x, operands->y, operands->rule}))
#define ROW(monoid, values, operands, indexed, nan, level, cost, terms, ...) TILES_##terms(DEFINE_##operands, values, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE_1
#undef DEFINE_2
#undef DEFINE

#define CELL(monoid, value) [VALUE_##value] = tile_##monoid##_##value,
static tile_function *const tiles[MONOID_COUNT][VALUE_COUNT] = {
#define ROW(monoid, values, operands, indexed, nan, level, cost, terms, ...) {TILES_##terms(CELL, values, monoid)},
    MONOIDS(ROW)
#undef ROW
};
#undef CELL

/* Elements that are brought to values. */
static void fold_converted(const struct work *work, const struct conversion *to, void *partial)
{
    const size_t bytes = types[work->type].element_bytes;
    const uint32_t piece = pieces[work->monoid];
    _Alignas(64) unsigned char x[PIECE_EXACT * sizeof(uint64_t)], y[PIECE_EXACT * sizeof(uint64_t)];
    for (uint64_t start = 0; start < work->n; start += piece) {
        const struct range range = {work->first + start, u64_min(work->n - start, piece)};
        to->convert(x, (const char *)work->x + start * bytes, (uint32_t)range.count);
        if (work->y != NULL)
            to->convert(y, (const char *)work->y + start * bytes, (uint32_t)range.count);
        tiles[work->monoid][to->value](partial, &(struct tile_operands){x, y, work->rule}, &range);
    }
}

static void fold(const struct work *work, struct partial *partial)
{
    const struct conversion to = conversion_of(work->monoid, work->type);
    if (to.convert == NULL)
        tiles[work->monoid][to.value](partial->bytes, &(struct tile_operands){work->x, work->y, work->rule}, &(struct range){work->first, work->n});
    else
        fold_converted(work, &to, partial->bytes);
}

/* Rounding results to what is asked for. */
typedef void round_f64_function(void *y, const double *results, uint32_t n);
#define DEFINE(ID, name, ...)                                                     \
    static void round_f64_to_##name(void *y, const double *results, uint32_t n)   \
    {                                                                             \
        for (uint32_t i = 0; i < n; i++)                                          \
            ((element_##name *)y)[i] = round_##name(results[i]);                  \
    }
FLOAT_TYPES(DEFINE)
#undef DEFINE
#define CELL(ID, name, ...) [ALLFOLD_##ID] = round_f64_to_##name,
static round_f64_function *const round_f64_to[] = {FLOAT_TYPES(CELL)};
#undef CELL

static void round_to(allfold_type type, void *y, const double *results, uint32_t n) { round_f64_to[type](y, results, n); }

static void round_f32_to(allfold_type type, void *y, const float *results, uint32_t n)
{
    switch (type) {
#define CASE(ID, name, ...)                                       \
    case ALLFOLD_##ID:                                            \
        for (uint32_t i = 0; i < n; i++)                          \
            ((element_##name *)y)[i] = f32_to_##name(results[i]); \
        break;
        FLOAT_TYPES(CASE)
#undef CASE
    default: break;
    }
}

/* ---- columns: folded as they lie, or brought to rows in a buffer */

/* Columns' elements [start, start + n) as values, a row of COLUMN_STEP values for each. */
static void columns_take(const struct columns *x, const struct conversion *conversion, uint64_t start, uint32_t n, unsigned char *values)
{
    const size_t bytes = types[x->type].element_bytes, value_bytes = conversion->bytes;
    struct matrix to = {values, COLUMN_STEP * value_bytes}, from = {(unsigned char *)(uintptr_t)x->x + start * x->stride * bytes, x->stride * bytes};
    enum { ROWS = 16 };
    _Alignas(64) unsigned char converted[ROWS * COLUMNS_ACROSS * sizeof(uint64_t)];
    if (conversion->convert == NULL) {
        transpose(to, from, n, x->columns, bytes, true);
        return;
    }
    for (uint32_t row = 0; row < n; row += ROWS) {
        const uint32_t rows = n - row < ROWS ? n - row : ROWS;
        prefetch_rows(from, row + ROWS, rows, x->columns * bytes);
        for (uint32_t r = 0; r < rows; r++)
            conversion->convert(converted + r * COLUMNS_ACROSS * value_bytes, from.at + (row + r) * from.stride, x->columns);
        transpose((struct matrix){to.at + row * value_bytes, to.stride}, (struct matrix){converted, COLUMNS_ACROSS * value_bytes}, rows,
                  x->columns, value_bytes, false);
    }
}

#include "device/cpu/side_by_side.h"
#include "device/cpu/normalise.h"

#define JOIN(a, b) a##b
#define EXPAND(a, b) JOIN(a, b)
#define TEXT(x) #x
#define NAME_OF(x) TEXT(x)
const struct cpu_loops EXPAND(cpu_loops_, CPU_ISA) = {NAME_OF(CPU_ISA), fold, fold_columns, fold_rows, round_to, constants, normalise_rows, normalise_columns};
