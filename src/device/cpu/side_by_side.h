/* Folds of columns, and of short rows, side by side: a part of loops.c, which includes it where what it uses is defined. */
#pragma once

enum { LANES_WIDE = 16 };

/* Folds side by side: columns_template.h. No `take`: there is no such way. */
struct lanes {
    void (*start)(void *state, const struct fold_rows *rows);
    void (*take)(void *state, const struct fold_rows *rows);
    bool (*settle)(const void *state, uint32_t c, void *partial, uint64_t first);
    uint32_t least; /* if the whole box has fewer columns, or rows, they are brought to rows */
    bool is_rounded; /* bits depend on the way, which therefore follows from the column's own elements, and from nothing that threads change */
    void (*close)(void *partial); /* or NULL: propagates carries */
};
#define OPEN_LANES(monoid, value) \
    [VALUE_##value] = {monoid##_lanes_start_##value, monoid##_lanes_take_##value, monoid##_lanes_settle_##value, 0, false, NULL},
#define WIDE_LANES(monoid, value) \
    [VALUE_##value] = {monoid##_lanes_start_##value, monoid##_lanes_take_##value, monoid##_lanes_settle_##value, LANES_WIDE, false, NULL},
#define EXP_LANES(monoid, value) \
    [VALUE_##value] = {monoid##_lanes_start_##value, monoid##_lanes_take_##value, monoid##_lanes_settle_##value, LANES_WIDE, true, NULL},
#define CLOSED_LANES(monoid, value) \
    [VALUE_##value] = {monoid##_lanes_start_##value, monoid##_lanes_take_##value, monoid##_lanes_settle_##value, 0, false, monoid##_lanes_close_##value},
static const struct lanes lanes[MONOID_COUNT][VALUE_COUNT] = {
    [MONOID_sum] = {VALUES(OPEN_LANES, sum)},
    [MONOID_min] = {VALUES(OPEN_LANES, min)},
    [MONOID_max] = {VALUES(OPEN_LANES, max)},
    [MONOID_norm1] = {VALUES(OPEN_LANES, norm1)},
    [MONOID_norm2] = {VALUES_F32(OPEN_LANES, norm2)},
    [MONOID_norminf] = {VALUES(OPEN_LANES, norminf)},
    [MONOID_argmin] = {VALUES(WIDE_LANES, argmin)},
    [MONOID_argmax] = {VALUES(WIDE_LANES, argmax)},
    [MONOID_sumexp] = {VALUES_F32(EXP_LANES, sumexp)},
    [MONOID_sumexp_half] = {VALUES_F32(EXP_LANES, sumexp)},
    [MONOID_sumexp_quick] = {VALUES_F32(EXP_LANES, sumexp_quick)},
    [MONOID_sum_exact] = {VALUES_FLOAT(CLOSED_LANES, sum_exact)},
    [MONOID_norm1_exact] = {VALUES_FLOAT(CLOSED_LANES, norm1_exact)},
    [MONOID_norm2_exact] = {VALUES_F32(CLOSED_LANES, norm2_exact)},
};
#undef OPEN_LANES
#undef WIDE_LANES
#undef EXP_LANES
#undef CLOSED_LANES

/* Results without partials: of lanes, and of a row. NULL: there are none. */
struct direct {
    void (*lanes)(const void *state, uint32_t columns, double *results, unsigned char *finished);
    bool (*row)(const void *x, uint32_t n, double *result); /* false: not of this row */
};
#define DIRECT(monoid, value) [VALUE_##value] = {monoid##_lanes_results_##value, monoid##_row_result_##value},
#define DIRECT_LANES(monoid, value) [VALUE_##value] = {monoid##_lanes_results_##value, NULL},
static const struct direct direct[MONOID_COUNT][VALUE_COUNT] = {
#define ROW(monoid) [MONOID_##monoid] = {VALUES_FLOAT(DIRECT, monoid)},
    ROW(sum) ROW(min) ROW(max) ROW(norm1) ROW(norminf)
#undef ROW
#define ROW(monoid) [MONOID_##monoid] = {VALUES_F32(DIRECT, monoid) VALUES_F64(DIRECT_LANES, monoid)},
    ROW(sum_exact) ROW(norm1_exact)
#undef ROW
    [MONOID_argmin] = {VALUES(DIRECT_LANES, argmin)}, /* places */
    [MONOID_argmax] = {VALUES(DIRECT_LANES, argmax)},
    [MONOID_sumexp_quick] = {VALUES_F32(DIRECT_LANES, sumexp_quick)},
};
#undef DIRECT
#undef DIRECT_LANES

/* What folds side by side need besides. */
struct side_fold {
    const struct side_by_side *f;
    struct conversion conversion;
    const struct lanes *lanes;
    const struct direct *direct; /* NULL: partials are wanted */
    size_t stride, used;         /* of partials */
    struct partial identity;
    uint32_t failures, skip;     /* of trials with lanes */
};

static struct side_fold side_fold_of(const struct side_by_side *f)
{
    struct side_fold fold;
    fold.f = f;
    fold.conversion = conversion_of(f->monoid, f->x.type);
    fold.lanes = &lanes[f->monoid][fold.conversion.value];
    fold.direct = f->results != NULL ? &direct[f->monoid][fold.conversion.value] : NULL;
    fold.stride = partial_stride(f->monoid, f->x.type);
    fold.used = monoid_bytes(f->monoid, f->x.type);
    fold.failures = fold.skip = 0;
    monoid_identity(f->monoid, f->x.type, &fold.identity);
    return fold;
}

static void *partial_of(const struct side_fold *fold, uint64_t c) { return fold->f->partials + c * fold->stride; }
static void begin_partial(const struct side_fold *fold, uint64_t c) { memcpy(partial_of(fold, c), fold->identity.bytes, fold->used); }
static void close_partial(const struct side_fold *fold, uint64_t c)
{
    if (fold->lanes->close != NULL)
        fold->lanes->close(partial_of(fold, c));
}

static bool has_lanes(const struct side_fold *fold) { return fold->lanes->take != NULL && fold->f->all >= fold->lanes->least; }

/* Whether lanes are tried. If many columns of a run after run fail, more and more runs go without a trial. */
static bool lanes_try(struct side_fold *fold)
{
    const bool tries = has_lanes(fold) && fold->skip == 0;
    fold->skip -= fold->skip > 0;
    return tries;
}
static void lanes_tried(struct side_fold *fold, uint32_t failed, uint32_t columns)
{
    if (failed <= columns / 8 || fold->lanes->is_rounded) {
        fold->failures = 0;
        return;
    }
    fold->skip = (1u << 2 * fold->failures) - 1;
    fold->failures += fold->failures < 3;
}

/* Rows from `row` on, as values, the columns from x->x on: as they lie, or at most FOLD_ROWS that are converted. */
enum { VALUES_MOST = FOLD_COLUMNS / 2, VALUES_STEP = VALUES_MOST + 16 /* no power of two */ };
static struct fold_rows rows_at(const struct side_fold *fold, const struct columns *x, uint64_t row, uint32_t count)
{
    const size_t bytes = types[x->type].element_bytes;
    const struct matrix from = {(unsigned char *)(uintptr_t)x->x + row * x->stride * bytes, x->stride * bytes};
    unsigned char *const values = fold->f->buffers->values;
    if (fold->conversion.convert == NULL) {
        const bool goes_on = row + count < x->length || x->stride == x->columns; /* behind them; else the next columns are needed */
        return (struct fold_rows){from.at, x->stride, count, x->columns,
                                  goes_on ? from.at + count * from.stride : (unsigned char *)(uintptr_t)x->x + x->columns * bytes};
    }
    for (uint32_t r = 0; r < count; r++) {
        if (row + r + FOLD_ROWS < x->length)
            prefetch_rows(from, r + FOLD_ROWS, 1, x->columns * bytes);
        fold->conversion.convert(values + r * VALUES_STEP * fold->conversion.bytes, from.at + r * from.stride, x->columns);
    }
    return (struct fold_rows){values, VALUES_STEP, count, x->columns, NULL};
}

/* The weights of elements [first, first + n) of column or row c, together: where they lie, or in the buffer. NULL: there are none. */
static const double *weights_at(const struct side_fold *fold, uint64_t c, uint64_t first, uint32_t n, double *buffer)
{
    const struct box_weights *const weights = &fold->f->weights;
    if (weights->at == NULL)
        return NULL;
    const double *const from = weights->at + c * weights->inner + first * weights->axis;
    if (weights->axis == 1)
        return from;
    for (uint32_t i = 0; i < n; i++)
        buffer[i] = from[i * weights->axis];
    return buffer;
}

/* Folds a run of the columns from c on, COLUMNS_ACROSS at most, by the tile function of rows: those that are not settled, or all. */
static void fold_transposed(const struct side_fold *fold, struct range run, uint32_t c, uint32_t columns, const unsigned char *settled)
{
    const struct side_by_side *const f = fold->f;
    struct columns some = f->x;
    unsigned char *const values = f->buffers->values;
    some.x = (const char *)some.x + c * types[some.type].element_bytes;
    some.columns = columns;
    for (uint64_t done = 0; done < run.count; done += COLUMN_RUN) {
        const struct range range = {f->first + run.first + done, u64_min(run.count - done, COLUMN_RUN)};
        double gathered[COLUMN_RUN];
        const double *weights = NULL;
        columns_take(&some, &fold->conversion, run.first + done, (uint32_t)range.count, values);
        for (uint32_t i = 0; i < columns; i++) {
            if (settled != NULL && settled[i])
                continue;
            if (weights == NULL || f->weights.inner != 0)
                weights = weights_at(fold, c + i, run.first + done, (uint32_t)range.count, gathered);
            tiles[f->monoid][fold->conversion.value](
                partial_of(fold, c + i), &(struct tile_operands){.x = values + i * COLUMN_STEP * fold->conversion.bytes, .y = weights}, &range);
        }
    }
}

/* Takes a run of some columns as they lie. */
static void take_run(const struct side_fold *fold, const struct columns *x, struct range run)
{
    void *const state = fold->f->buffers->lanes;
    const uint32_t n = (uint32_t)run.count, some = n < FOLD_ROWS ? n : FOLD_ROWS, step = fold->conversion.convert == NULL ? n : FOLD_ROWS;
    struct fold_rows rows = rows_at(fold, x, run.first, some);
    fold->lanes->start(state, &rows);
    for (uint32_t row = 0, count; row < n; row += count) {
        count = n - row < step ? n - row : step;
        if (row > 0 || count != some)
            rows = rows_at(fold, x, run.first + row, count);
        fold->lanes->take(state, &rows);
    }
}

/* Folds a run of those of the columns from c on that lanes have not settled; some by themselves, many together. Returns their number. */
static uint32_t fold_others(const struct side_fold *fold, struct range run, uint32_t c, uint32_t columns, const unsigned char *settled)
{
    uint32_t others = 0;
    for (uint32_t from = 0, n; from < columns; from += n) {
        n = columns - from < COLUMNS_ACROSS ? columns - from : COLUMNS_ACROSS;
        uint32_t some = 0;
        for (uint32_t i = from; i < from + n; i++)
            some += !settled[i];
        others += some;
        if (some > n / 8)
            fold_transposed(fold, run, c + from, n, settled + from);
        for (uint32_t i = from; i < from + n && some <= n / 8; i++)
            if (!settled[i])
                fold_transposed(fold, run, c + i, 1, NULL);
    }
    return others;
}

/* Folds a run of the columns [c, c + columns) as they lie. Returns the number of those for which that did not do. */
static uint32_t fold_lanes(const struct side_fold *fold, struct range run, uint32_t c, uint32_t columns)
{
    const void *const state = fold->f->buffers->lanes;
    struct columns some = fold->f->x;
    unsigned char settled[FOLD_COLUMNS];
    some.x = (const char *)some.x + c * types[some.type].element_bytes;
    some.columns = columns;
    take_run(fold, &some, run);
    for (uint32_t i = 0; i < columns; i++)
        settled[i] = fold->lanes->settle(state, i, partial_of(fold, c + i), fold->f->first + run.first);
    return fold_others(fold, run, c, columns, settled);
}

/* Stores the results that lanes hold. */
static void store_direct(const struct side_fold *fold, uint64_t c, uint32_t columns)
{
    const struct side_by_side *const f = fold->f;
    fold->direct->lanes(f->buffers->lanes, columns, f->results + c, f->finished + c);
}

/* Folds the columns [c, c + columns), as many as there are lanes for and no longer than a run, to results. */
static void fold_strip_direct(struct side_fold *fold, uint32_t c, uint32_t columns)
{
    struct columns some = fold->f->x;
    some.x = (const char *)some.x + c * types[some.type].element_bytes;
    some.columns = columns;
    take_run(fold, &some, (struct range){0, some.length});
    store_direct(fold, c, columns);
    for (uint32_t i = c; i < c + columns; i++)
        if (!fold->f->finished[i])
            begin_partial(fold, i);
    fold_others(fold, (struct range){0, some.length}, c, columns, fold->f->finished + c);
}

/* Carries in words are propagated after this number of runs, and at the end: exact_add_integer. */
enum { CLOSE_RUNS = 1 << 20 };

/* The same of any length, to partials. */
static void fold_strip(struct side_fold *fold, uint32_t c, uint32_t columns)
{
    const uint64_t length = fold->f->x.length;
    for (uint32_t i = c; i < c + columns; i++)
        begin_partial(fold, i);
    for (uint64_t start = 0; start < length; start += FOLD_LANE_RUN) {
        const struct range run = {start, u64_min(length - start, FOLD_LANE_RUN)};
        const bool tries = lanes_try(fold), closes = start + run.count == length || (start / FOLD_LANE_RUN + 1) % CLOSE_RUNS == 0;
        if (tries)
            lanes_tried(fold, fold_lanes(fold, run, c, columns), columns);
        for (uint32_t i = 0; i < columns && !tries; i += COLUMNS_ACROSS)
            fold_transposed(fold, run, c + i, columns - i < COLUMNS_ACROSS ? columns - i : COLUMNS_ACROSS, NULL);
        for (uint32_t i = c; i < c + columns && closes; i++)
            close_partial(fold, i);
    }
}

static void fold_columns(const struct side_by_side *f)
{
    struct side_fold fold = side_fold_of(f);
    const bool is_direct = fold.direct != NULL && fold.direct->lanes != NULL && f->x.length <= FOLD_LANE_RUN && has_lanes(&fold);
    const uint32_t most = fold.conversion.convert != NULL ? VALUES_MOST : FOLD_COLUMNS; /* values need room in a cache, too */
    if (f->finished != NULL)
        memset(f->finished, 0, f->x.columns);
    for (uint32_t c = 0; c < f->x.columns; c += most)
        (is_direct ? fold_strip_direct : fold_strip)(&fold, c, f->x.columns - c < most ? f->x.columns - c : most);
}

/* ---- rows: one by one, or if they are short as columns, brought there some elements at a time */

enum {
    ROWS_TOGETHER = 64,
    ROW_SHORT = 128, ROW_SHORT_DIRECT = 48, /* longer ones are folded one by one, and those that need no partial from there on */
    ROW_AHEAD_BYTES = 512 /* of rows to come are asked for */
};

/* Gives some rows from r on to lanes. */
static void take_rows(const struct side_fold *fold, uint64_t r, uint32_t rows)
{
    const struct side_by_side *const f = fold->f;
    unsigned char *const values = f->buffers->values;
    struct columns part = f->x;
    for (uint32_t start = 0; start < f->x.length; start += COLUMNS_ACROSS) {
        part.x = (const char *)f->x.x + (r * f->x.stride + start) * types[f->x.type].element_bytes;
        part.columns = (uint32_t)u64_min(f->x.length - start, COLUMNS_ACROSS);
        columns_take(&part, &fold->conversion, 0, rows, values);
        struct fold_rows across = {values, COLUMN_STEP, part.columns < FOLD_ROWS ? part.columns : FOLD_ROWS, rows, NULL};
        if (start == 0)
            fold->lanes->start(f->buffers->lanes, &across);
        across.count = part.columns;
        fold->lanes->take(f->buffers->lanes, &across);
    }
}

/* The same of a row with weights, some elements at a time. */
static void fold_weighted_row(const struct side_fold *fold, uint64_t r, const char *x)
{
    const struct side_by_side *const f = fold->f;
    const struct conversion *const to = &fold->conversion;
    const size_t bytes = types[f->x.type].element_bytes;
    _Alignas(64) double values[PIECE_EXACT], gathered[PIECE_EXACT];
    for (uint64_t start = 0; start < f->x.length; start += PIECE_EXACT) {
        const struct range range = {f->first + start, u64_min(f->x.length - start, PIECE_EXACT)};
        const void *piece = x + start * bytes;
        if (to->convert != NULL) {
            to->convert(values, piece, (uint32_t)range.count);
            piece = values;
        }
        const double *const weights = weights_at(fold, r, start, (uint32_t)range.count, gathered);
        tiles[f->monoid][to->value](partial_of(fold, r), &(struct tile_operands){.x = piece, .y = weights}, &range);
    }
}

/* Folds one row by the tile function. */
static void fold_row(const struct side_fold *fold, uint64_t r)
{
    const struct side_by_side *const f = fold->f;
    const struct range range = {f->first, f->x.length};
    const char *const x = (const char *)f->x.x + r * f->x.stride * types[f->x.type].element_bytes;
    begin_partial(fold, r);
    if (f->weights.at != NULL)
        fold_weighted_row(fold, r, x);
    else if (fold->conversion.convert == NULL)
        tiles[f->monoid][fold->conversion.value](partial_of(fold, r), &(struct tile_operands){.x = x}, &range);
    else
        fold_converted(&(struct work){f->monoid, f->x.type, x, f->x.length, f->first, NULL, NULL}, &fold->conversion, partial_of(fold, r));
}

/* Folds short rows by lanes. Returns the number of those for which that did not do. */
static uint32_t fold_rows_across(const struct side_fold *fold, uint64_t r, uint32_t rows)
{
    const struct side_by_side *const f = fold->f;
    uint32_t failed = 0;
    take_rows(fold, r, rows);
    if (fold->direct != NULL && fold->direct->lanes != NULL)
        store_direct(fold, r, rows);
    for (uint32_t i = 0; i < rows; i++) {
        if (f->finished != NULL && f->finished[r + i])
            continue;
        begin_partial(fold, r + i);
        if (fold->lanes->settle(f->buffers->lanes, i, partial_of(fold, r + i), f->first))
            close_partial(fold, r + i);
        else {
            failed++;
            fold_row(fold, r + i);
        }
    }
    return failed;
}

/* Whether rows that lie as values may need no partial. */
static bool rows_are_direct(const struct side_fold *fold)
{
    return fold->direct != NULL && fold->direct->row != NULL && fold->conversion.convert == NULL;
}

/* One row after the other. */
static void fold_rows_singly(const struct side_fold *fold, uint64_t first, uint32_t rows)
{
    const struct side_by_side *const f = fold->f;
    const size_t bytes = types[f->x.type].element_bytes;
    const bool direct = rows_are_direct(fold);
    const size_t row = f->x.length * bytes, ahead = row < ROW_AHEAD_BYTES ? row : ROW_AHEAD_BYTES, next = (2 * ROW_AHEAD_BYTES / (ahead + !ahead) - 1) * f->x.stride * bytes;
    for (uint64_t r = first; r < first + rows; r++) {
        const char *const x = (const char *)f->x.x + r * f->x.stride * bytes;
        for (size_t at = 0; at < ahead; at += 64)
            FOLD_PREFETCH(x + next + at);
        if (direct && (f->finished[r] = fold->direct->row(x, (uint32_t)f->x.length, &f->results[r])))
            continue;
        fold_row(fold, r);
    }
}

static void fold_rows(const struct side_by_side *f)
{
    struct side_fold fold = side_fold_of(f);
    const uint32_t most = rows_are_direct(&fold) ? ROW_SHORT_DIRECT : ROW_SHORT;
    const bool is_short = f->x.length > 0 && f->x.length <= most;
    if (f->finished != NULL)
        memset(f->finished, 0, f->x.columns);
    for (uint64_t r = 0; r < f->x.columns; r += ROWS_TOGETHER) {
        const uint32_t rows = (uint32_t)u64_min(f->x.columns - r, ROWS_TOGETHER);
        if (is_short && lanes_try(&fold))
            lanes_tried(&fold, fold_rows_across(&fold, r, rows), rows);
        else
            fold_rows_singly(&fold, r, rows);
    }
}
