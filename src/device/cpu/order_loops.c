/* The passes of order statistics on the CPU, compiled once for each instruction set (CPU_ISA), by the thread that calls. */
#include "device/cpu/order.h"

#include "base/range.h"

#include <stdlib.h>
#include <string.h>

enum { TILE = 2048, FEW = 32 /* elements of which mostly none are kept */ };

static void add(uint64_t *count, uint64_t more)
{
    if (more != 0)
        __atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

/* x[0 .. n) to their cells, by value. */
typedef void cells_function(uint32_t *cells, const void *x, uint32_t n, const struct order_guess *guess);
#define DEFINE(ID, name, numpy, bytes, kind, value)                                                                  \
    static void cells_of_##name(uint32_t *cells, const void *x, uint32_t n, const struct order_guess *given)        \
    {                                                                                                                \
        const struct order_guess guess = *given;                                                                     \
        for (uint32_t i = 0; i < n; i++)                                                                             \
            cells[i] = ORDER_IS_SHORT(bytes, kind) ? order_even_f32((float)load_##name(((const element_##name *)x)[i]), &guess)   \
                                                   : order_even_f64((double)load_##name(((const element_##name *)x)[i]), &guess); \
    }
ALLFOLD_TYPES(DEFINE)
#undef DEFINE
static cells_function *const cells_of[ALLFOLD_TYPE_COUNT] = {
#define ROW(ID, name, ...) [ALLFOLD_##ID] = cells_of_##name,
    ALLFOLD_TYPES(ROW)
#undef ROW
};

/* x[0 .. n) to their intervals of even boundaries. False: some element is NaN, or so near a boundary that roundings may decide: of x, x - low, low,
   scale, the product, and the boundaries. In f64 these are less than 16 times 2^-53 together; in f32, less than 8 times 2^-24. */
enum { EVEN_TILE = 256 };
typedef bool even_function(uint32_t *intervals, const void *x, uint32_t n, const struct order_guess *guess);
static double even_near(const struct order_guess *guess, double roundings)
{
    const double near = roundings * (guess->cells + 1 + fabs(guess->low) * guess->scale);
    return guess->scale >= 0x1p-100 && guess->scale <= 0x1p100 && near < 0.25 ? near : 1.0; /* 1: all are near */
}
#define EVEN_f32 float, f32_bits, ORDER_WHOLE_F32, 0x1p-21, guess.low_f32, guess.scale_f32
#define EVEN_f64 double, f64_bits, ORDER_WHOLE_F64, 0x1p-49, guess.low, guess.scale
#define EVEN_LOOP(...) EVEN_LOOP_(__VA_ARGS__)
#define EVEN_LOOP_(element, real, bits_of, whole, roundings, first, by)                                         \
    const real from = (real)-0.5, to = (real)guess.cells - (real)0.5, near = (real)even_near(&guess, roundings); \
    for (uint32_t i = 0; i < n; i++) {                                                                          \
        const real at = ((real)(element) - (first)) * (by), above = at < from ? from : at;                      \
        const real place = above > to ? to : above; /* NaN stays */                                             \
        const real rough = place + (whole), rest = place - (rough - (whole));                                   \
        unsure |= fabs((double)rest) > (double)near ? 0 : 1;                                                    \
        intervals[i] = (uint32_t)(bits_of(rough) - bits_of(whole)) + (rest > 0 ? 1 : 0);                        \
    }
#define DEFINE(ID, name, numpy, bytes, kind, value)                                                                 \
    static bool even_of_##name(uint32_t *intervals, const void *x, uint32_t n, const struct order_guess *given)     \
    {                                                                                                               \
        const struct order_guess guess = *given;                                                                    \
        uint32_t unsure = 0;                                                                                        \
        if (ORDER_IS_SHORT(bytes, kind)) {                                                                          \
            EVEN_LOOP(load_##name(((const element_##name *)x)[i]), EVEN_f32)                                        \
        } else {                                                                                                    \
            EVEN_LOOP(load_##name(((const element_##name *)x)[i]), EVEN_f64)                                        \
        }                                                                                                           \
        return unsure == 0;                                                                                         \
    }
ALLFOLD_TYPES(DEFINE)
#undef DEFINE
#undef EVEN_LOOP
#undef EVEN_LOOP_
static even_function *const even_of[ALLFOLD_TYPE_COUNT] = {
#define ROW(ID, name, ...) [ALLFOLD_##ID] = even_of_##name,
    ALLFOLD_TYPES(ROW)
#undef ROW
};

enum { COPIES = 4, COPIED_MOST = 1 << 12 };
struct counters {
    uint32_t *of[COPIES]; /* all different, or all the same */
    void *cells;          /* room for what each has */
};

#define U uint8_t
#define BITS 8
#define SUM uint32_t
#include "device/cpu/order_template.h"
#define U uint16_t
#define BITS 16
#define SUM uint32_t
#include "device/cpu/order_template.h"
#define U uint32_t
#define BITS 32
#define SUM uint32_t
#include "device/cpu/order_template.h"
#define U uint64_t
#define BITS 64
#define SUM uint64_t
#include "device/cpu/order_template.h"

/* Counters of 32 bits: the caller gives less elements than they count. */
static bool use_table(const struct order_work *work, void (*table)(const struct order_work *, cells_function *, const struct counters *))
{
    const uint32_t intervals = work->table->count + 1, copies = intervals <= COPIED_MOST ? COPIES : 1;
    const size_t each = (intervals + 16) / 16 * 16; /* one is behind the last */
    struct counters counters = {.of = {calloc(each * copies, sizeof(uint32_t))}, .cells = malloc(2 * sizeof(uint64_t) * (work->table->guess.exact ? 1 : work->table->guess.cells))};
    const bool done = counters.of[0] != NULL && counters.cells != NULL;
    for (uint32_t i = 1; done && i < COPIES; i++)
        counters.of[i] = counters.of[0] + i % copies * each;
    if (done)
        table(work, cells_of[work->type], &counters);
    for (uint32_t interval = 0; done && interval < intervals; interval++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < copies; i++)
            sum += counters.of[i][interval];
        add(&work->counts[ORDER_FIRST_COUNT + interval], sum);
    }
    free(counters.of[0]);
    free(counters.cells);
    return done;
}

#define NAME_(isa) cpu_order_##isa
#define NAME(isa) NAME_(isa)
bool NAME(CPU_ISA)(const struct order_work *work)
{
    switch (8 * allfold_type_bytes(work->type)) {
#define CASE(bytes, bits, ...)                       \
    case bits:                                       \
        if (work->kind == ORDER_TABLE)               \
            return use_table(work, table_##bits);    \
        if (work->kind == ORDER_KEEP)                \
            return use_table(work, keep_odd_##bits); \
        if (work->kind == ORDER_BRACKETS)            \
            brackets_##bits(work);                   \
        else if (work->kind == ORDER_TIES)           \
            ties_##bits(work);                       \
        else if (work->kind == ORDER_ENDS)           \
            ends_##bits(work);                       \
        else                                         \
            sample_##bits(work);                     \
        return true;
        ORDER_WIDTHS(CASE)
#undef CASE
    default: return true;
    }
}
