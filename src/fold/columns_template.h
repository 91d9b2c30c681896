/* Template: a fold of columns side by side. Each column has a lane of its own, so rows are read as they lie. NAME is the monoid.
   LANE(F) lists the fields of a lane: F(type, field, start). STEP(lane, x) takes an element. SETTLE(lane, partial, first) takes a run of them,
   of which the first one has this index, into the column's partial; it is false if the lane does not hold what it was given. PEEK(lane, x), if it is defined, is given the
   elements of the first rows before any step, and OPEN(lane) follows. RESULT(lane), if it is defined, is what a fold of the lane's
   elements alone gives, as a double, HOLDS(lane) whether the lane holds them. */
#define FIELD_ARRAY(type, field, start) type field[FOLD_COLUMNS + 16]; /* no power of two, for rows are often one */
#define FIELD(type, field, start) type field;
#define FIELD_START(type, field, start) lanes->field[c] = (start);
#define FIELD_LOAD(type, field, start) lane.field = lanes->field[c];
#define FIELD_STORE(type, field, start) lanes->field[c] = lane.field;

typedef struct {
    LANE(FIELD)
} NAME_FN(lane);
typedef struct {
    LANE(FIELD_ARRAY)
} NAME_FN(lanes);
_Static_assert(sizeof(NAME_FN(lanes)) <= FOLD_LANES_BYTES, "more room is needed for lanes");

/* Statements for the lanes of columns [from, to). */
#define FOR_LANES(from, to, ...)                   \
    FOLD_SIMD                                      \
    for (uint32_t c = (from); c < (to); c++) {     \
        NAME_FN(lane) lane;                        \
        LANE(FIELD_LOAD)                           \
        __VA_ARGS__                                \
        LANE(FIELD_STORE)                          \
    }

#define FOUR_STEPS(x) \
    STEP(&lane, (x)[c]); STEP(&lane, (x)[stride + c]); STEP(&lane, (x)[2 * stride + c]); STEP(&lane, (x)[3 * stride + c])

/* Begins a run, of which the first rows are given. */
static void NAME_FN(lanes_start)(void *restrict state, const struct fold_rows *rows)
{
    NAME_FN(lanes) *const restrict lanes = state;
    const uint32_t columns = rows->columns;
    for (uint32_t c = 0; c < columns; c++) {
        LANE(FIELD_START)
    }
#ifdef PEEK
    const V *restrict x = rows->x;
    for (uint32_t row = 0; row < rows->count; row++, x += rows->stride)
        FOR_LANES(0, columns, PEEK(&lane, x[c]);)
    FOR_LANES(0, columns, OPEN(&lane);)
#endif
}

/* Some rows at a time, for which lanes are loaded and stored once. The rows behind them are asked for, as the processor sees no stream in them. */
static void NAME_FN(lanes_take)(void *restrict state, const struct fold_rows *rows)
{
    NAME_FN(lanes) *const restrict lanes = state;
    const V *restrict x = rows->x;
    const size_t stride = rows->stride;
    const uint32_t columns = rows->columns;
    for (uint32_t row = 0, taken; row < rows->count; row += taken, x += taken * stride) {
        const uint32_t left = rows->count - row;
        taken = left >= FOLD_ROWS ? FOLD_ROWS : left >= 4 ? 4 : 1;
        const V *const next = left > taken ? x + taken * stride : rows->next;
        const uint32_t ahead = rows->next == NULL || taken < FOLD_ROWS ? 0 : left > taken && left - taken < FOLD_ROWS ? left - taken : FOLD_ROWS;
        for (uint32_t start = 0; start < columns; start += FOLD_NEAR) {
            const uint32_t end = columns - start < FOLD_NEAR ? columns : start + FOLD_NEAR;
            for (uint32_t r = 0; r < ahead; r++)
                for (uint32_t c = start; c < end; c += 64 / sizeof(V))
                    FOLD_PREFETCH_FAR(next + r * stride + c);
            if (taken == 1)
                FOR_LANES(start, end, STEP(&lane, x[c]);)
            else if (taken == 4)
                FOR_LANES(start, end, FOUR_STEPS(x);)
            else
                FOR_LANES(start, end, FOUR_STEPS(x); FOUR_STEPS(x + 4 * stride);)
        }
    }
}
_Static_assert(FOLD_ROWS == 8, "two times four steps");

static bool NAME_FN(lanes_settle)(const void *state, uint32_t c, void *partial, uint64_t first)
{
    (void)first;
    const NAME_FN(lanes) *const lanes = state;
    NAME_FN(lane) lane;
    LANE(FIELD_LOAD)
    return SETTLE(&lane, (FN(NAME) *)partial, first);
}

#ifdef RESULT
static void NAME_FN(lanes_results)(const void *restrict state, uint32_t columns, double *restrict results, unsigned char *restrict finished)
{
    const NAME_FN(lanes) *const restrict lanes = state;
    FOLD_SIMD
    for (uint32_t c = 0; c < columns; c++) {
        NAME_FN(lane) lane;
        LANE(FIELD_LOAD)
        results[c] = RESULT(&lane);
        finished[c] = HOLDS(&lane);
    }
}
#endif
#undef FIELD_ARRAY
#undef FIELD
#undef FIELD_START
#undef FIELD_LOAD
#undef FIELD_STORE
#undef FOR_LANES
#undef FOUR_STEPS
#undef LANE
#undef STEP
#undef SETTLE
#undef PEEK
#undef OPEN
#undef RESULT
#undef HOLDS
