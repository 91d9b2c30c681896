/* The passes of order statistics over elements of BITS bits, of unsigned type U: order_loops.c. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WIDE(name) JOIN(name##_, BITS)

static void WIDE(keys)(U *keys, const U *x, uint32_t n, struct order_map map)
{
    for (uint32_t i = 0; i < n; i++)
        keys[i] = WIDE(order_key)(x[i], map);
}

/* Of a tile: how many keys are in a bracket, and equal its ends, and 1 for each that is kept. */
static void WIDE(count_bracket)(const U *keys, uint32_t n, struct order_bracket bracket, bool whole, uint64_t counts[ORDER_COUNTS], U *kept)
{
    const U low = (U)bracket.low, last = (U)bracket.last, width = (U)(last - low), shift = (U)(whole ? 0 : 1);
    SUM from = 0, behind = 0, at_low = 0, at_last = 0;
    for (uint32_t i = 0; i < n; i++) {
        from += keys[i] >= low;
        behind += keys[i] > last;
    }
    counts[ORDER_FROM] += from;
    if (from == behind)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const U at = (U)(keys[i] - low);
        at_low += at == 0;
        at_last += at == width;
        kept[i] |= at >= shift && at <= (U)(width - shift) && (whole || width > 1);
    }
    at_last = width == 0 ? 0 : at_last;
    counts[ORDER_LOW] += at_low;
    counts[ORDER_LAST] += at_last;
    counts[ORDER_BETWEEN] += from - behind - at_low - at_last;
}

/* Appends a tile's keys that are kept to what the work keeps. */
static void WIDE(keep)(const struct order_work *work, const U *keys, U *kept, uint32_t n, uint64_t first)
{
    const U low = (U)work->ties.low, width = (U)(work->ties.last - work->ties.low);
    const uint32_t free = work->limit <= first ? 0 : (uint32_t)u64_min(work->limit - first, n);
    uint16_t places[TILE + 1];
    uint32_t count = 0;
    SUM wanted = 0;
    for (uint32_t i = free; i < n; i++)
        kept[i] &= (U)(keys[i] - low) > width;
    for (uint32_t i = 0; i < n; i++)
        wanted += kept[i];
    if (wanted == 0)
        return;
    const uint64_t at = __atomic_fetch_add(&work->counts[ORDER_KEPT], wanted, __ATOMIC_RELAXED);
    for (uint32_t start = 0; start < n && at < work->capacity; start += FEW) {
        const uint32_t end = start + FEW < n ? start + FEW : n;
        U any = 0;
        for (uint32_t i = start; i < end; i++)
            any |= kept[i];
        for (uint32_t i = start; i < end && any != 0; i++) {
            places[count] = (uint16_t)i;
            count += kept[i] != 0;
        }
    }
    for (uint32_t i = 0; i < count && at + i < work->capacity; i++) {
        ((U *)work->keys)[at + i] = keys[places[i]];
        if (work->indices != NULL)
            work->indices[at + i] = first + places[i];
    }
}

static void WIDE(brackets)(const struct order_work *work)
{
    const struct order_brackets *const brackets = work->brackets;
    const struct order_map map = order_map_of(work->type);
    const U last = (U)order_last(work->type);
    uint64_t counts[ORDER_BRACKETS_MOST][ORDER_COUNTS] = {{0}}, nans = 0;
    U keys[TILE], kept[TILE];
    for (uint64_t start = 0; start < work->n; start += TILE) {
        const uint32_t n = (uint32_t)u64_min(work->n - start, TILE);
        SUM more = 0;
        WIDE(keys)(keys, (const U *)work->x + start, n, map);
        for (uint32_t i = 0; i < n; i++)
            more += keys[i] > last;
        nans += more;
        memset(kept, 0, sizeof kept);
        for (uint32_t b = 0; b < brackets->count; b++)
            WIDE(count_bracket)(keys, n, brackets->list[b], brackets->whole, counts[b], kept);
        if (work->keys != NULL)
            WIDE(keep)(work, keys, kept, n, work->first + start);
    }
    add(&work->counts[ORDER_NANS], nans);
    for (uint32_t b = 0; b < brackets->count; b++)
        for (uint32_t i = 0; i < ORDER_COUNTS; i++)
            add(&work->counts[ORDER_FIRST_COUNT + b * ORDER_COUNTS + i], counts[b][i]);
}

/* What a cell has: where its intervals begin, and the key below its boundary, if it has one. If it has several, its elements are counted in the
   interval behind the last, and looked up later. */
struct WIDE(cell) {
    U below;
    uint32_t first;
};

static void WIDE(list_cells)(const struct order_table *table, struct WIDE(cell) *list)
{
    const U *const keys = table->keys;
    for (uint32_t cell = 0; cell < table->guess.cells; cell++) {
        const uint32_t begin = table->cells[cell], has = table->cells[cell + 1] - begin;
        const bool always = has == 1 && keys[begin] == 0;
        list[cell].below = has == 1 && !always ? (U)(keys[begin] - 1) : (U)~(U)0;
        list[cell].first = has > 1 ? table->count + 1 : begin + always;
    }
}

/* The cells of x[0 .. n), which have these keys. */
static inline void WIDE(cells)(uint32_t *cells, const U *x, const U *keys, uint32_t n, const struct order_guess *guess, cells_function *by_value)
{
    const struct order_guess own = *guess;
    if (own.even)
        by_value(cells, x, n, guess);
    else
        for (uint32_t i = 0; i < n; i++)
            cells[i] = WIDE(order_cell)(keys[i], &own, own.splits);
}

/* Neighbours are often of one interval: each has counters of its own, so that none waits for the other. */
static void WIDE(table)(const struct order_work *work, cells_function *cells_of, const struct counters *counters)
{
    const struct order_table table = *work->table;
    const struct order_map map = order_map_of(work->type);
    const struct WIDE(cell) *const list = counters->cells;
    uint32_t *const *const of = counters->of, cells[TILE];
    U keys[TILE];
    const uint32_t tile = table.guess.even ? EVEN_TILE : TILE;
    uint32_t skip = table.guess.even ? 0 : UINT32_MAX, failures = 0; /* coming tiles without a trial */
    if (!table.guess.exact)
        WIDE(list_cells)(&table, counters->cells);
    for (uint64_t start = 0; start < work->n; start += tile) {
        const uint32_t n = (uint32_t)u64_min(work->n - start, tile), whole = n / COPIES * COPIES;
        uint32_t several = 0;
        const bool is_even = skip == 0 && even_of[work->type](cells, (const U *)work->x + start, n, &table.guess);
        if (table.guess.exact) {
            WIDE(keys)(keys, (const U *)work->x + start, n, map);
            WIDE(cells)(cells, (const U *)work->x + start, keys, n, &table.guess, cells_of);
        }
        if (is_even || table.guess.exact) {
            for (uint32_t i = 0; i < whole; i += COPIES)
                for (uint32_t copy = 0; copy < COPIES; copy++)
                    of[copy][cells[i + copy]]++;
            for (uint32_t i = whole; i < n; i++)
                of[0][cells[i]]++;
            failures = 0;
            continue;
        }
        failures += skip == 0 && failures < 6;
        skip = skip == 0 ? (1u << failures) - 2 : skip - table.guess.even;
        WIDE(keys)(keys, (const U *)work->x + start, n, map);
        WIDE(cells)(cells, (const U *)work->x + start, keys, n, &table.guess, cells_of);
        for (uint32_t i = 0; i < whole; i += COPIES)
            for (uint32_t copy = 0; copy < COPIES; copy++)
                of[copy][list[cells[i + copy]].first + (keys[i + copy] > list[cells[i + copy]].below)]++;
        for (uint32_t i = whole; i < n; i++)
            of[0][list[cells[i]].first + (keys[i] > list[cells[i]].below)]++;
        for (uint32_t copy = 0; copy < COPIES; copy++) {
            several |= of[copy][table.count + 1];
            of[copy][table.count + 1] = 0;
        }
        for (uint32_t i = 0; several != 0 && i < n; i++)
            if (list[cells[i]].first > table.count)
                of[0][WIDE(order_interval)(table.keys, table.cells[cells[i]], table.cells[cells[i] + 1], keys[i])]++;
    }
}

/* Keeps what is in odd intervals. */
static void WIDE(keep_odd)(const struct order_work *work, cells_function *cells_of, const struct counters *counters)
{
    const struct order_table table = *work->table;
    const struct order_map map = order_map_of(work->type);
    struct WIDE(order_odd) *const list = counters->cells;
    uint32_t cells[TILE];
    U keys[TILE], kept[TILE];
    for (uint32_t cell = 0; cell < table.guess.cells; cell++)
        list[cell] = WIDE(order_odd_in)(&table, cell);
    for (uint64_t start = 0; start < work->n; start += TILE) {
        const uint32_t n = (uint32_t)u64_min(work->n - start, TILE);
        WIDE(keys)(keys, (const U *)work->x + start, n, map);
        WIDE(cells)(cells, (const U *)work->x + start, keys, n, &table.guess, cells_of);
        uint32_t several = 0;
        for (uint32_t i = 0; i < n; i++) {
            const struct WIDE(order_odd) odd = list[cells[i]];
            kept[i] = (U)(keys[i] - odd.low) < odd.keys;
            several |= odd.keys == (U)~(U)0;
        }
        for (uint32_t i = 0; several != 0 && i < n; i++)
            if (list[cells[i]].keys == (U)~(U)0)
                kept[i] = WIDE(order_interval)(table.keys, table.cells[cells[i]], table.cells[cells[i] + 1], keys[i]) % 2;
        WIDE(keep)(work, keys, kept, n, work->first + start);
    }
}

/* Tiles of one range of indices each. */
static void WIDE(ties)(const struct order_work *work)
{
    const struct order_map map = order_map_of(work->type);
    const U low = (U)work->ties.low, width = (U)(work->ties.last - work->ties.low);
    U keys[TILE];
    uint32_t n;
    for (uint64_t start = 0; start < work->n; start += n) {
        const uint64_t range = (work->first + start) >> work->ties.shift, behind = ((range + 1) << work->ties.shift) - work->first;
        SUM count = 0;
        n = (uint32_t)u64_min(u64_min(behind, work->n) - start, TILE);
        WIDE(keys)(keys, (const U *)work->x + start, n, map);
        for (uint32_t i = 0; i < n; i++)
            count += (U)(keys[i] - low) <= width;
        add(&work->counts[ORDER_FIRST_COUNT + range], count);
    }
}

static void WIDE(ends)(const struct order_work *work)
{
    const struct order_map map = order_map_of(work->type);
    const U last = (U)order_last(work->type);
    U keys[TILE], least = (U)~(U)0, largest = 0;
    for (uint64_t start = 0; start < work->n; start += TILE) {
        const uint32_t n = (uint32_t)u64_min(work->n - start, TILE);
        WIDE(keys)(keys, (const U *)work->x + start, n, map);
        for (uint32_t i = 0; i < n; i++) {
            const U number = keys[i] <= last ? keys[i] : 0;
            least = keys[i] < least ? keys[i] : least;
            largest = number > largest ? number : largest;
        }
    }
    if (largest < least) /* no number is there */
        return;
    const uint64_t at = __atomic_fetch_add(&work->counts[ORDER_KEPT], 2, __ATOMIC_RELAXED);
    ((U *)work->keys)[at] = least;
    ((U *)work->keys)[at + 1] = largest;
}

static void WIDE(sample)(const struct order_work *work)
{
    const struct order_map map = order_map_of(work->type);
    for (uint64_t i = 0; i < work->n / work->stride; i++)
        ((U *)work->keys)[i] = WIDE(order_key)(((const U *)work->x)[order_sample_place(i, work->stride)], map);
}

#undef WIDE
#undef JOIN
#undef JOIN_
#undef U
#undef BITS
#undef SUM
