/* The second pass of softmax, and its constants: a part of loops.c, which includes it where what it uses is defined. */
#pragma once

/* What follows from one sum; the maximum and the sum are finite. The sum with the term of the maximum as it should be. */
static inline void total_of(double max, double *high, double *low)
{
    const pair sum = {*high, *low}, total = softmax_total(max, exp_others_finite(max, &sum, EXP_TERMS_F32));
    *high = total.high;
    *low = total.low;
}
/* What softmax in f32 arithmetic needs of the constants. */
static inline void constants_f32(double max, double high, double low, float *base, float *least, float *shift, float *inverse_high, float *inverse_low)
{
    const pair total = {high, low};
    struct softmax_constants c;
    softmax_constants_finite(max, &total, &c);
    *base = c.anchor_f32.base;
    *least = c.anchor_f32.least;
    *shift = c.anchor_f32.shift;
    *inverse_high = c.inverse_high_f32;
    *inverse_low = c.inverse_low_f32;
}
/* What log-softmax needs. */
static inline void constants_log(double max, double high, double low, double *log_sum, double *log_low)
{
    const pair log = log_of_others_finite(max, (pair){high, low});
    *log_sum = log.high;
    *log_low = log.low;
}

enum { CONSTANTS_TOGETHER = 64 };

/* The same of some, at most CONSTANTS_TOGETHER, as vectors. */
static void set_inverses(uint32_t n, const double *max, const double *high, const double *low, struct softmax_constants *c)
{
    float base[CONSTANTS_TOGETHER], least[CONSTANTS_TOGETHER], shift[CONSTANTS_TOGETHER], inverse_high[CONSTANTS_TOGETHER], inverse_low[CONSTANTS_TOGETHER];
    FOLD_SIMD
    for (uint32_t i = 0; i < n; i++)
        constants_f32(max[i], high[i], low[i], &base[i], &least[i], &shift[i], &inverse_high[i], &inverse_low[i]);
    for (uint32_t i = 0; i < n; i++) {
        c[i].anchor_f32 = (struct exp_anchor_f32){base[i], least[i], shift[i]};
        c[i].inverse_high_f32 = inverse_high[i];
        c[i].inverse_low_f32 = inverse_low[i];
    }
}
static void set_logarithms(uint32_t n, const double *max, const double *high, const double *low, struct softmax_constants *c)
{
    double log_sum[CONSTANTS_TOGETHER], log_low[CONSTANTS_TOGETHER];
    FOLD_SIMD
    for (uint32_t i = 0; i < n; i++)
        constants_log(max[i], high[i], low[i], &log_sum[i], &log_low[i]);
    for (uint32_t i = 0; i < n; i++) {
        c[i].max = max[i];
        c[i].log_sum = log_sum[i];
        c[i].log_low = log_low[i];
    }
}

static void constants(enum monoid monoid, enum softmax_needs needs, const struct partials *of, struct softmax_constants *c)
{
    const bool exact = monoid_facts[monoid].level == ALLFOLD_LEVEL_EXACT, f32_terms = monoid_facts[monoid].terms != TERMS_F64;
    const bool logarithm = needs != SOFTMAX_NEEDS_INVERSE, together = needs == SOFTMAX_NEEDS_LOG ? exact : needs == SOFTMAX_NEEDS_INVERSE && f32_terms;
    double max[CONSTANTS_TOGETHER], high[CONSTANTS_TOGETHER], low[CONSTANTS_TOGETHER];
    bool usual[CONSTANTS_TOGETHER] = {false};
    for (uint32_t first = 0; first < of->count; first += CONSTANTS_TOGETHER) {
        const uint32_t n = of->count - first < CONSTANTS_TOGETHER ? of->count - first : CONSTANTS_TOGETHER;
        for (uint32_t i = 0; i < n && together; i++) {
            const void *const partial = of->at + (first + i) * of->stride;
            const struct exp_partial *const fast = partial;
            const struct exp_bins *const bins = partial;
            const pair sum = !exact ? fast->sum : logarithm ? exp_bins_others(bins, f32_terms) : softmax_total_f32(bins);
            max[i] = exact ? bins->max : fast->max;
            usual[i] = is_finite(max[i]) && is_finite(sum.high);
            max[i] = usual[i] ? max[i] : 0.0;
            high[i] = usual[i] ? sum.high : 1.0;
            low[i] = usual[i] ? sum.low : 0.0;
        }
        if (together && !exact)
            FOLD_SIMD
            for (uint32_t i = 0; i < n; i++)
                total_of(max[i], &high[i], &low[i]);
        if (together)
            (logarithm ? set_logarithms : set_inverses)(n, max, high, low, c + first);
        for (uint32_t i = 0; i < n; i++)
            if (!usual[i])
                softmax_constants_of(of->at + (first + i) * of->stride, exact, f32_terms, logarithm, &c[first + i]);
    }
}

/* The second pass goes by small pieces: the processor computes one while it stores the last. A piece is a part of a row, or of a row of columns,
   or several whole ones, if these are short. */
enum { SOFTMAX_PIECE = 256 };

/* The constants of each element of a piece. */
struct softmax_lanes {
    float base_f32[SOFTMAX_PIECE], least_f32[SOFTMAX_PIECE], shift_f32[SOFTMAX_PIECE], high_f32[SOFTMAX_PIECE], low_f32[SOFTMAX_PIECE];
    double base[SOFTMAX_PIECE], least[SOFTMAX_PIECE], high[SOFTMAX_PIECE], low[SOFTMAX_PIECE];
    uint64_t bias[SOFTMAX_PIECE];
    double max[SOFTMAX_PIECE], log_sum[SOFTMAX_PIECE], log_low[SOFTMAX_PIECE];
};

/* How results are computed: in f32, for results of f32 or of fewer bits, or in f64. */
enum softmax_way { SOFTMAX_F32, SOFTMAX_SHORT, SOFTMAX_F64, SOFTMAX_LOG };
static enum softmax_way way_of(bool logarithm, allfold_type x_type, allfold_type y_type)
{
    if (logarithm)
        return SOFTMAX_LOG;
    if (type_value(x_type) != VALUE_f32 || y_type == ALLFOLD_F64)
        return SOFTMAX_F64;
    return y_type == ALLFOLD_F32 ? SOFTMAX_F32 : SOFTMAX_SHORT;
}

/* Constants for the elements of `count` rows of `width`: each of these has its own, or each column. */
static inline void set_lanes(struct softmax_lanes *lanes, enum softmax_way way, const struct softmax_constants *c, bool rows, uint32_t count,
                             uint32_t width)
{
#define SET(field, constant)                            \
    for (uint32_t r = 0; r < count; r++)                \
        for (uint32_t i = 0; i < width; i++)            \
            lanes->field[r * width + i] = c[rows ? r : i].constant
    switch (way) {
    case SOFTMAX_F32:
    case SOFTMAX_SHORT:
        SET(base_f32, anchor_f32.base);
        SET(least_f32, anchor_f32.least);
        SET(shift_f32, anchor_f32.shift);
        SET(high_f32, inverse_high_f32);
        SET(low_f32, inverse_low_f32);
        break;
    case SOFTMAX_F64:
        SET(base, anchor.base);
        SET(least, anchor.least);
        SET(bias, anchor.bias);
        SET(high, inverse_high);
        SET(low, inverse_low);
        break;
    case SOFTMAX_LOG:
        SET(max, max);
        SET(log_sum, log_sum);
        SET(log_low, log_low);
        break;
    }
#undef SET
}

/* Result i of a piece. */
#define F32_OF(lanes, i)                              \
    struct softmax_constants c;                       \
    c.anchor_f32.base = (lanes)->base_f32[i];         \
    c.anchor_f32.least = (lanes)->least_f32[i];       \
    c.anchor_f32.shift = (lanes)->shift_f32[i];       \
    c.inverse_high_f32 = (lanes)->high_f32[i];        \
    c.inverse_low_f32 = (lanes)->low_f32[i]
static inline float lane_f32(const struct softmax_lanes *lanes, float x, uint32_t i)
{
    F32_OF(lanes, i);
    return softmax_f32(x, &c);
}
static inline float lane_short(const struct softmax_lanes *lanes, float x, uint32_t i)
{
    F32_OF(lanes, i);
    return softmax_short(x, &c);
}
#undef F32_OF
static inline double lane_f64(const struct softmax_lanes *lanes, double x, uint32_t i)
{
    struct softmax_constants c;
    c.anchor.base = lanes->base[i];
    c.anchor.least = lanes->least[i];
    c.anchor.bias = lanes->bias[i];
    c.inverse_high = lanes->high[i];
    c.inverse_low = lanes->low[i];
    return softmax_f64(x, &c);
}
static inline double lane_log(const struct softmax_lanes *lanes, double x, uint32_t i)
{
    struct softmax_constants c;
    c.max = lanes->max[i];
    c.log_sum = lanes->log_sum[i];
    c.log_low = lanes->log_low[i];
    return log_softmax_f64(x, &c);
}

/* The results of a piece, of values in f32 or f64. one: all elements have the first one's constants. */
static void softmax_results(const struct softmax_lanes *restrict lanes, enum softmax_way way, bool one, const void *restrict values,
                            void *restrict results, uint32_t n)
{
#define EACH(type, lane, at)                    \
    {                                           \
        const type *const x = values;           \
        type *const y = results;                \
        FOLD_SIMD                               \
        for (uint32_t i = 0; i < n; i++)        \
            y[i] = lane(lanes, x[i], at);       \
    }
#define CASE(way, type, lane)       \
    case way:                       \
        if (one)                    \
            EACH(type, lane, 0)     \
        else                        \
            EACH(type, lane, i)     \
        break;
    switch (way) {
        CASE(SOFTMAX_F32, float, lane_f32)
        CASE(SOFTMAX_SHORT, float, lane_short)
        CASE(SOFTMAX_F64, double, lane_f64)
        CASE(SOFTMAX_LOG, double, lane_log)
    }
#undef EACH
#undef CASE
}

/* What a piece has of an array: runs of neighbours, from element `first` on, as far apart as its rows. */
struct piece_runs {
    const struct columns *of;
    uint64_t first;
    uint32_t count, width;
};
static char *run_at(const struct piece_runs *runs, uint32_t r)
{
    return (char *)(uintptr_t)runs->of->x + (runs->first + r * runs->of->stride) * types[runs->of->type].element_bytes;
}
/* The same as one run, if they lie so. */
static struct piece_runs joined(const struct piece_runs *runs)
{
    const bool together = runs->count == 1 || runs->of->stride == runs->width;
    return (struct piece_runs){runs->of, runs->first, together ? 1 : runs->count, together ? runs->count * runs->width : runs->width};
}

/* The elements as values, next to each other: in the buffer, unless they lie so already. */
static const void *values_together(const struct piece_runs *runs, bool f32, void *buffer)
{
    const struct piece_runs all = joined(runs);
    const size_t bytes = all.width * (f32 ? sizeof(float) : sizeof(double));
    const bool converted = all.of->type != (f32 ? ALLFOLD_F32 : ALLFOLD_F64);
    if (!converted && all.count == 1)
        return run_at(&all, 0);
    for (uint32_t r = 0; r < all.count; r++)
        if (converted)
            (f32 ? types[all.of->type].values : types[all.of->type].f64)((char *)buffer + r * bytes, run_at(&all, r), all.width);
        else
            memcpy((char *)buffer + r * bytes, run_at(&all, r), bytes);
    return buffer;
}

/* Stores bytes, whole lines past the caches: they need not be fetched to be filled. */
static void store_past(char *to, const char *from, size_t bytes)
{
    size_t done = 0;
#ifdef __AVX__
    const size_t head = (size_t)(-(uintptr_t)to & 63);
    if (bytes >= head + 64) {
        memcpy(to, from, head);
        for (done = head; done + 64 <= bytes; done += 64)
            for (size_t i = done; i < done + 64; i += 32)
                _mm256_stream_si256((__m256i *)(to + i), _mm256_loadu_si256((const __m256i *)(from + i)));
    }
#endif
    memcpy(to + done, from + done, bytes - done);
}

static void store_results(const struct piece_runs *runs, bool f32, const void *results)
{
    _Alignas(64) char rounded[SOFTMAX_PIECE * sizeof(float)];
    const struct piece_runs all = joined(runs);
    const allfold_type type = all.of->type;
    const size_t bytes = all.width * types[type].element_bytes;
    const char *from = results;
    if (type != (f32 ? ALLFOLD_F32 : ALLFOLD_F64)) {
        from = rounded;
        if (f32)
            round_f32_to(type, rounded, results, all.count * all.width);
        else
            round_f64_to[type](rounded, results, all.count * all.width);
    }
    for (uint32_t r = 0; r < all.count; r++)
        store_past(run_at(&all, r), from + r * bytes, bytes);
}

static void normalise_piece(enum softmax_way way, const struct softmax_lanes *lanes, bool one, const struct piece_runs *x, const struct piece_runs *y)
{
    const bool f32 = way == SOFTMAX_F32 || way == SOFTMAX_SHORT;
    _Alignas(64) char values[SOFTMAX_PIECE * sizeof(double)], results[SOFTMAX_PIECE * sizeof(double)];
    softmax_results(lanes, way, one, values_together(x, f32, values), results, x->count * x->width);
    store_results(y, f32, results);
}

static void normalise_rows(bool logarithm, const struct columns *x, const struct columns *y, const struct softmax_constants *constants)
{
    const enum softmax_way way = way_of(logarithm, x->type, y->type);
    const uint32_t width = (uint32_t)u64_min(u64_max(x->length, 1), SOFTMAX_PIECE), most = SOFTMAX_PIECE / width;
    struct softmax_lanes lanes;
    for (uint32_t r = 0, count; r < x->columns; r += count) {
        count = x->columns - r < most ? x->columns - r : most;
        set_lanes(&lanes, way, constants + r, true, count, count == 1 ? 1 : width);
        for (uint64_t start = 0; start < x->length; start += width) {
            const uint32_t n = (uint32_t)u64_min(x->length - start, width);
            normalise_piece(way, &lanes, count == 1, &(struct piece_runs){x, r * x->stride + start, count, n}, &(struct piece_runs){y, r * y->stride + start, count, n});
        }
    }
}

static void normalise_columns(bool logarithm, const struct columns *x, const struct columns *y, const struct softmax_constants *constants)
{
    enum { AHEAD = 8 };
    const enum softmax_way way = way_of(logarithm, x->type, y->type);
    const size_t bytes = types[x->type].element_bytes;
    struct softmax_lanes lanes;
    for (uint32_t first = 0, width; first < x->columns; first += width) {
        width = x->columns - first < SOFTMAX_PIECE ? x->columns - first : SOFTMAX_PIECE;
        const uint32_t most = (uint32_t)u64_min(x->length, SOFTMAX_PIECE / width);
        set_lanes(&lanes, way, constants + first, false, most, width);
        for (uint64_t row = 0; row < x->length; row += most) {
            const uint32_t count = (uint32_t)u64_min(most, x->length - row);
            const struct piece_runs from = {x, row * x->stride + first, count, width};
            if (x->stride > width && row + AHEAD < x->length) /* rows that lie far apart are no stream that the processor sees */
                prefetch_rows((struct matrix){(unsigned char *)run_at(&from, 0), x->stride * bytes}, AHEAD, count, width * bytes);
            normalise_piece(way, &lanes, false, &from, &(struct piece_runs){y, row * y->stride + first, count, width});
        }
    }
}
