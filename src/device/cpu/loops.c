/* The CPU backend's inner loops, compiled once for each instruction set (CPU_ISA). Elements are brought to their value
   type a piece at a time, in the first-level cache, where they are not in it already. */
#include "device/cpu/loops.h"
#include "fold/folds.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

enum { PIECE = 1024, PIECE_EXACT = 4096 };
static const uint32_t pieces[MONOID_COUNT] = {
#define ROW(monoid, ...) [MONOID_##monoid] = PIECE,
    STRUCT_MONOIDS(ROW)
#undef ROW
#define ROW(monoid, ...) [MONOID_##monoid] = PIECE_EXACT,
    WORD_MONOIDS(ROW)
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

/* y is NULL unless the monoid has two operands. */
typedef void tile_function(void *partial, const void *x, const void *y, const struct range *range);
#define DEFINE(monoid, value, ARRAYS)                                                                              \
    static void tile_##monoid##_##value(void *partial, const void *x, const void *y, const struct range *range)    \
    {                                                                                                              \
        (void)y;                                                                                                   \
        monoid##_tile_##value(partial, ARRAYS, (uint32_t)range->count, range->first);                              \
    }
#define DEFINE_1(monoid, value) DEFINE(monoid, value, x)
#define DEFINE_2(monoid, value) DEFINE(monoid, value, ((arrays_##value){x, y}))
#define ROW(monoid, values, operands, ...) VALUES_##values(DEFINE_##operands, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE_1
#undef DEFINE_2
#undef DEFINE

#define CELL(monoid, value) [VALUE_##value] = tile_##monoid##_##value,
static tile_function *const tiles[MONOID_COUNT][VALUE_COUNT] = {
#define ROW(monoid, values, ...) {VALUES_##values(CELL, monoid)},
    MONOIDS(ROW)
#undef ROW
};
#undef CELL

static void fold(const struct work *work, struct partial *partial)
{
    const allfold_type type = work->type;
    const uint32_t piece = pieces[work->monoid];
    tile_function *const tile = tiles[work->monoid][type_value(type)];
    if (types[type].element_bytes == types[type].value_bytes) {
        tile(partial->bytes, work->x, work->y, &(struct range){work->first, work->n});
        return;
    }
    _Alignas(64) unsigned char x[PIECE_EXACT * sizeof(uint64_t)], y[PIECE_EXACT * sizeof(uint64_t)];
    for (uint64_t start = 0; start < work->n; start += piece) {
        const struct range range = {work->first + start, u64_min(work->n - start, piece)};
        const size_t offset = start * types[type].element_bytes;
        types[type].values(x, (const char *)work->x + offset, (uint32_t)range.count);
        if (work->y != NULL)
            types[type].values(y, (const char *)work->y + offset, (uint32_t)range.count);
        tile(partial->bytes, x, y, &range);
    }
}

/* Rounding results to what is asked for. */
typedef void round_f64_function(void *y, const double *results, uint32_t n);
#define DEFINE(name)                                                              \
    static void round_f64_to_##name(void *y, const double *results, uint32_t n)   \
    {                                                                             \
        for (uint32_t i = 0; i < n; i++)                                          \
            ((element_##name *)y)[i] = round_##name(results[i]);                  \
    }
DEFINE(f16)
DEFINE(bf16)
DEFINE(f32)
#undef DEFINE
static round_f64_function *const round_f64_to[] = {
    [ALLFOLD_F16] = round_f64_to_f16, [ALLFOLD_BF16] = round_f64_to_bf16, [ALLFOLD_F32] = round_f64_to_f32};

static void round_f32_to(allfold_type type, void *y, const float *results, uint32_t n)
{
    if (type == ALLFOLD_F16)
        for (uint32_t i = 0; i < n; i++)
            ((element_f16 *)y)[i] = f32_to_f16(results[i]);
    else
        for (uint32_t i = 0; i < n; i++)
            ((element_bf16 *)y)[i] = f32_to_bf16(results[i]);
}

/* Stores a piece past the caches, unless it is read again: lines need not be fetched to be filled. */
static void store_piece(const struct softmax_work *piece, const void *from, size_t bytes)
{
    void *const to = piece->y;
#ifdef __AVX__
    if (!piece->read_again && ((uintptr_t)to & 31) == 0 && (bytes & 31) == 0) {
        for (size_t i = 0; i < bytes; i += 32)
            _mm256_stream_si256((__m256i *)((char *)to + i), _mm256_load_si256((const __m256i *)((const char *)from + i)));
        return;
    }
#endif
    memcpy(to, from, bytes);
}

/* Softmax goes by smaller pieces: the processor then computes one while it stores the last. */
enum { SOFTMAX_PIECE = 256 };

static inline void softmax_values_f32(const struct softmax_constants *c, bool to_f32, const float *x, float *results, uint32_t n)
{
    if (to_f32) {
        FOLD_SIMD
        for (uint32_t i = 0; i < n; i++)
            results[i] = softmax_f32(x[i], c);
    } else {
        FOLD_SIMD
        for (uint32_t i = 0; i < n; i++)
            results[i] = softmax_short(x[i], c);
    }
}

/* One piece in f32 arithmetic: x in f16, bf16 or f32, y likewise. */
static void normalise_piece_f32(const struct softmax_work *piece, const struct softmax_constants *c)
{
    const uint32_t n = (uint32_t)piece->n;
    _Alignas(64) float values[SOFTMAX_PIECE], results[SOFTMAX_PIECE];
    const float *in = piece->x;
    if (piece->x_type != ALLFOLD_F32) {
        types[piece->x_type].values(values, piece->x, n);
        in = values;
    }
    if (c->anchor_f32.base != 0)
        softmax_values_f32(c, piece->y_type == ALLFOLD_F32, in, results, n);
    else { /* as in the first pass: the compiler sees that there is nothing to subtract */
        struct softmax_constants usual = *c;
        usual.anchor_f32.base = 0;
        softmax_values_f32(&usual, piece->y_type == ALLFOLD_F32, in, results, n);
    }
    if (piece->y_type == ALLFOLD_F32)
        store_piece(piece, results, n * sizeof *results);
    else
        round_f32_to(piece->y_type, piece->y, results, n);
}

static void normalise_piece_f64(const struct softmax_work *piece, const struct softmax_constants *c)
{
    const uint32_t n = (uint32_t)piece->n;
    _Alignas(64) double values[SOFTMAX_PIECE], results[SOFTMAX_PIECE];
    types[piece->x_type].f64(values, piece->x, n);
    if (piece->logarithm)
        for (uint32_t i = 0; i < n; i++)
            results[i] = log_softmax_f64(values[i], c);
    else {
        FOLD_SIMD
        for (uint32_t i = 0; i < n; i++)
            results[i] = softmax_f64(values[i], c);
    }
    if (piece->y_type == ALLFOLD_F64)
        store_piece(piece, results, n * sizeof *results);
    else
        round_f64_to[piece->y_type](piece->y, results, n);
}

static void normalise(const struct softmax_work *work, const struct softmax_constants *constants)
{
    const struct softmax_constants c = *constants;
    const bool f32 = !work->logarithm && type_value(work->x_type) == VALUE_f32 && work->y_type != ALLFOLD_F64;
    struct softmax_work piece = *work;
    for (uint64_t start = 0; start < work->n; start += SOFTMAX_PIECE) {
        piece.n = u64_min(work->n - start, SOFTMAX_PIECE);
        piece.x = (const char *)work->x + start * types[work->x_type].element_bytes;
        piece.y = (char *)work->y + start * types[work->y_type].element_bytes;
        if (f32)
            normalise_piece_f32(&piece, &c);
        else
            normalise_piece_f64(&piece, &c);
    }
#ifdef __AVX__
    _mm_sfence();
#endif
}

/* ---- columns: they are brought to rows in a buffer */

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLES
#endif
#endif

#ifdef HAVE_SHUFFLES
typedef uint32_t vector_4 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t vector_8 __attribute__((vector_size(32), aligned(8), may_alias));

/* Eight rows of eight elements of 4 bytes to eight columns. */
static inline void transpose_8x8(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride)
{
    vector_4 row[8], pair[8], four[8];
    for (int i = 0; i < 8; i++)
        row[i] = *(const vector_4 *)(from + (size_t)i * from_stride);
    for (int i = 0; i < 8; i += 2) {
        pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            four[i + 2 * j] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            four[i + 2 * j + 1] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        *(vector_4 *)(to + (size_t)i * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vector_4 *)(to + (size_t)(i + 4) * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* Four rows of four elements of 8 bytes to four columns. */
static inline void transpose_4x4(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride)
{
    vector_8 row[4], pair[4];
    for (int i = 0; i < 4; i++)
        row[i] = *(const vector_8 *)(from + (size_t)i * from_stride);
    for (int i = 0; i < 4; i += 2) {
        pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 4, 2, 6);
        pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(vector_8 *)(to + (size_t)i * to_stride) = __builtin_shufflevector(pair[i], pair[i + 2], 0, 1, 4, 5);
        *(vector_8 *)(to + (size_t)(i + 2) * to_stride) = __builtin_shufflevector(pair[i], pair[i + 2], 2, 3, 6, 7);
    }
}
#endif

/* A matrix of elements, rows apart by a stride in bytes. */
struct matrix {
    unsigned char *at;
    size_t stride;
};

static void transpose_singly(struct matrix to, struct matrix from, uint32_t row, uint32_t column, uint32_t rows, uint32_t columns,
                             size_t bytes)
{
    for (uint32_t r = row; r < rows; r++)
        for (uint32_t c = column; c < columns; c++) {
            const unsigned char *const x = from.at + r * from.stride + c * bytes;
            unsigned char *const y = to.at + c * to.stride + r * bytes;
            if (bytes == 8)
                memcpy(y, x, 8);
            else if (bytes == 4)
                memcpy(y, x, 4);
            else if (bytes == 2)
                memcpy(y, x, 2);
            else
                *y = *x;
        }
}

/* Asks for rows that come soon: rows that lie far apart are no stream that the processor sees. */
static inline void prefetch_rows(struct matrix from, uint32_t row, uint32_t rows, size_t bytes)
{
    for (uint32_t r = row; r < row + rows; r++)
        for (size_t at = 0; at < bytes; at += 64)
            FOLD_PREFETCH(from.at + r * from.stride + at);
}

/* to[c][r] = from[r][c], elements of 1, 2, 4 or 8 bytes. */
static void transpose(struct matrix to, struct matrix from, uint32_t rows, uint32_t columns, size_t bytes)
{
    uint32_t row = 0, column = 0;
#ifdef HAVE_SHUFFLES
    const uint32_t side = bytes == 4 ? 8 : 4;
    if (bytes >= 4) {
        row = rows / side * side;
        column = columns / side * side;
    }
    for (uint32_t r = 0; r < row; r += side) {
        prefetch_rows(from, r + 4 * side, side, columns * bytes);
        for (uint32_t c = 0; c < column; c += side) {
            unsigned char *const y = to.at + c * to.stride + r * bytes;
            const unsigned char *const x = from.at + r * from.stride + c * bytes;
            if (bytes == 4)
                transpose_8x8(y, to.stride, x, from.stride);
            else
                transpose_4x4(y, to.stride, x, from.stride);
        }
    }
#endif
    transpose_singly(to, from, 0, column, row, columns, bytes);
    transpose_singly(to, from, row, 0, rows, columns, bytes);
}

/* Columns' elements [start, start + n) as values, a row of COLUMN_STEP values for each. */
static void columns_take(const struct columns *x, uint64_t start, uint32_t n, unsigned char *values)
{
    const size_t bytes = types[x->type].element_bytes, value_bytes = types[x->type].value_bytes;
    struct matrix to = {values, COLUMN_STEP * value_bytes}, from = {(unsigned char *)(uintptr_t)x->x + start * x->stride * bytes, x->stride * bytes};
    enum { ROWS = 16 };
    _Alignas(64) unsigned char converted[ROWS * COLUMNS_MAX * sizeof(uint64_t)];
    if (bytes == value_bytes) {
        transpose(to, from, n, x->columns, bytes);
        return;
    }
    for (uint32_t row = 0; row < n; row += ROWS) {
        const uint32_t rows = n - row < ROWS ? n - row : ROWS;
        for (uint32_t r = 0; r < rows; r++)
            types[x->type].values(converted + r * COLUMNS_MAX * value_bytes, from.at + (row + r) * from.stride, x->columns);
        transpose((struct matrix){to.at + row * value_bytes, to.stride}, (struct matrix){converted, COLUMNS_MAX * value_bytes}, rows,
                  x->columns, value_bytes);
    }
}

static void fold_columns(enum monoid monoid, const struct columns *x, uint64_t first, unsigned char *partials,
                         struct column_buffers *buffers)
{
    unsigned char *const values = buffers->values;
    tile_function *const tile = tiles[monoid][type_value(x->type)];
    const size_t stride = partial_stride(monoid, x->type), value_bytes = types[x->type].value_bytes;
    for (uint64_t start = 0; start < x->length; start += COLUMN_RUN) {
        const uint32_t n = (uint32_t)u64_min(x->length - start, COLUMN_RUN);
        columns_take(x, start, n, values);
        for (uint32_t c = 0; c < x->columns; c++)
            tile(partials + c * stride, values + c * COLUMN_STEP * value_bytes, NULL, &(struct range){first + start, n});
    }
}

/* Values have element types of their own, as which softmax takes them. */
static const allfold_type type_of_value[VALUE_COUNT] = {
    [VALUE_f32] = ALLFOLD_F32, [VALUE_f64] = ALLFOLD_F64, [VALUE_i32] = ALLFOLD_INT32,
    [VALUE_i64] = ALLFOLD_INT64, [VALUE_u32] = ALLFOLD_UINT32, [VALUE_u64] = ALLFOLD_UINT64};

static void normalise_columns(const struct softmax_work *work, const struct columns *x, const struct columns *y,
                              const struct softmax_constants *constants, struct column_buffers *buffers)
{
    unsigned char *const values = buffers->values, *const results = buffers->results;
    const size_t value_bytes = types[x->type].value_bytes, y_bytes = types[y->type].element_bytes;
    for (uint64_t start = 0; start < x->length; start += COLUMN_RUN) {
        const uint32_t n = (uint32_t)u64_min(x->length - start, COLUMN_RUN);
        const struct matrix to = {(unsigned char *)(uintptr_t)y->x + start * y->stride * y_bytes, y->stride * y_bytes};
        columns_take(x, start, n, values);
        for (uint32_t c = 0; c < x->columns; c++) {
            struct softmax_work column = *work;
            column.x_type = type_of_value[type_value(x->type)];
            column.x = values + c * COLUMN_STEP * value_bytes;
            column.y = results + c * COLUMN_STEP * y_bytes;
            column.n = n;
            column.read_again = true;
            normalise(&column, &constants[c]);
        }
        transpose(to, (struct matrix){results, COLUMN_STEP * y_bytes}, x->columns, n, y_bytes);
    }
}

#define JOIN(a, b) a##b
#define EXPAND(a, b) JOIN(a, b)
#define TEXT(x) #x
#define NAME_OF(x) TEXT(x)
const struct cpu_loops EXPAND(cpu_loops_, CPU_ISA) = {NAME_OF(CPU_ISA), fold, fold_columns, normalise_columns, normalise};
