/* Compares two arrays: a fold of two operands, whose partial holds all that is found. Arrays that differ in type or in chunks are read as
   linear.c gives them. */
#include "core/compare.h"

#include "core/pieces.h"
#include "fold/compare_ends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- types */

static bool is_floating(allfold_type type) { return type_kind(type) == 'f'; }

allfold_type compare_type(allfold_type a, allfold_type b)
{
    if (a == b)
        return a;
    if (is_floating(a) != is_floating(b))
        return ALLFOLD_TYPE_NONE;
    return !is_floating(a) ? ALLFOLD_INT64 : a == ALLFOLD_F64 || b == ALLFOLD_F64 ? ALLFOLD_F64 : ALLFOLD_F32;
}

#define LINE(...) +1
_Static_assert(0 FLOAT_TYPES(LINE) == 4, "the distance in units in the last place: compare_units_f64, _f32 and compare_most_units know four types");
#undef LINE

/* The narrower of two floating-point types, or ALLFOLD_TYPE_NONE if neither is. */
static allfold_type narrower(allfold_type a, allfold_type b)
{
    if (!is_floating(a) || (a != b && allfold_type_bytes(a) == allfold_type_bytes(b)))
        return ALLFOLD_TYPE_NONE;
    return allfold_type_bytes(a) < allfold_type_bytes(b) ? a : b;
}

static struct compare_rule rule_of(const struct compare_input *input)
{
    const bool mixed = input->a_type != input->b_type;
    return (struct compare_rule){input->atol, input->rtol, input->equal_nan, mixed && input->a_type == ALLFOLD_UINT64,
                                 mixed && input->b_type == ALLFOLD_UINT64, narrower(input->a_type, input->b_type)};
}

/* A number for all that the ranks must agree upon. */
static uint64_t rule_number(const struct compare_input *input)
{
    const uint64_t numbers[] = {f64_bits(input->atol), f64_bits(input->rtol), input->equal_nan, (uint64_t)input->a_type, (uint64_t)input->b_type};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = (hash ^ numbers[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ (hash >> 29);
    return hash >> 24;
}

/* ---- the two sources */

/* The arrays have one shape. */
static bool same_chunks(const struct source *a, const struct source *b)
{
    const struct chunking *const of_a = a->chunking, *const of_b = b->chunking;
    return of_a->granule == of_b->granule && of_a->grid_count == of_b->grid_count
           && memcmp(of_a->grids, of_b->grids, of_a->grid_count * sizeof *of_a->grids) == 0;
}

/* Neither has an order of its own, or both the same. */
static bool same_order(const struct source *a, const struct source *b)
{
    return a->chunking == NULL && b->chunking == NULL ? b->granule == 1 || a->granule % b->granule == 0
                                                      : a->chunking != NULL && b->chunking != NULL && same_chunks(a, b);
}

void compare_close(const struct compare_input *input, const struct compare_alike *alike)
{
    if (alike->a != input->a)
        source_close(alike->a);
    if (alike->b != input->b)
        source_close(alike->b);
}

/* This rank's whole granules of an array. */
static struct range linear_part(const struct comm *comm, uint64_t count, uint64_t granule)
{
    const struct range part = range_part(count / granule + (count % granule != 0), (uint64_t)comm->rank, (uint64_t)comm->size);
    const uint64_t first = u64_min(part.first * granule, count);
    return (struct range){first, u64_min(part.count * granule, count - first)};
}

/* An array in device memory is converted there. */
static allfold_status open_linear(const struct allfold_context *ctx, struct source *inner, allfold_type type, uint64_t granule,
                                  struct source **source, struct error *error)
{
    if (linear_open(inner, type, granule, source, error) == ALLFOLD_OK && ctx->device->backend->own_memory) {
        (*source)->memory = inner->memory;
        (*source)->memory_type = inner->type != type ? inner->type : ALLFOLD_TYPE_NONE;
    }
    return error->status;
}

allfold_status compare_open(struct allfold_context *ctx, const struct compare_input *input, bool linear, struct compare_alike *alike, struct error *error)
{
    const allfold_type type = compare_type(input->a_type, input->b_type);
    *alike = (struct compare_alike){input->a, input->b, input->range};
    if (error->status != ALLFOLD_OK)
        return error->status;
    input->a->draw = input->b->draw = NULL; /* both are read */
    if (same_order(input->a, input->b) && !(linear && input->a->chunking != NULL) && input->a_type == input->b_type)
        return ALLFOLD_OK;
    const uint64_t granule = linear_granule(input->a, input->b, type);
    if (!input->has_part)
        alike->range = linear_part(&ctx->comm, input->count, granule);
    if (open_linear(ctx, input->a, type, granule, &alike->a, error) == ALLFOLD_OK)
        open_linear(ctx, input->b, type, granule, &alike->b, error);
    return error->status;
}

/* ---- the result */

static allfold_value value_of(allfold_type type, bool is_unsigned, uint64_t bits)
{
    allfold_value value = {.kind = ALLFOLD_VALUE_F64, .f64 = f64_from_bits(bits)};
    if (is_unsigned || type_kind(type) == 'u' || type_kind(type) == 'b')
        value = (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = bits};
    else if (type_kind(type) == 'i')
        value = (allfold_value){.kind = ALLFOLD_VALUE_I64, .i64 = (int64_t)bits};
    return value;
}

static allfold_largest largest_of(const struct compare_input *input, const struct compare_largest *found, bool units)
{
    const bool none = found->key == 0;
    allfold_largest largest = {.index = none ? ALLFOLD_NO_INDEX : found->index, .a = value_of(input->a_type, false, none ? 0 : found->a),
                               .b = value_of(input->b_type, false, none ? 0 : found->b)};
    largest.value = units ? (allfold_value){.kind = ALLFOLD_VALUE_U64, .u64 = found->key}
                          : (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = f64_from_bits(found->key)};
    return largest;
}

static void take_result(const struct compare_input *input, struct partial *partial, const struct fold_results *found, allfold_comparison *to)
{
    const struct compare_ends *const ends = compare_ends_of(compare_type(input->a_type, input->b_type), partial);
    const uint64_t missing = ends->missing_a + ends->missing_b;
    const uint64_t count = input->has_part ? found->count : input->count;
    *to = (allfold_comparison){.size = sizeof *to, .count = count, .different = ends->different + missing,
                               .outside = ends->outside + missing, .nan_a = ends->nan_a, .nan_b = ends->nan_b, .nan_both = ends->nan_both,
                               .missing_a = ends->missing_a, .missing_b = ends->missing_b,
                               .missing_both = count - found->count - missing,
                               .mean_difference = found->fields[0].value.f64, .rmse = found->fields[1].value.f64};
    to->within = to->outside == 0;
    to->has_ulp = narrower(input->a_type, input->b_type) != ALLFOLD_TYPE_NONE;
    to->max_abs = largest_of(input, &ends->largest[COMPARE_ABS], false);
    to->max_rel = largest_of(input, &ends->largest[COMPARE_REL], false);
    to->max_ulp = largest_of(input, &ends->largest[COMPARE_ULP], true);
}

allfold_status core_compare(struct allfold_context *ctx, const struct compare_input *input, allfold_comparison *result, struct error *error)
{
    const struct compare_rule rule = rule_of(input);
    const allfold_type type = compare_type(input->a_type, input->b_type);
    const struct fold_call call = {.fold = (allfold_fold)FOLD_COMPARE, .ddof = rule_number(input)};
    struct fold_results found;
    struct total total;
    struct compare_alike alike;
    compare_open(ctx, input, false, &alike, error);
    const struct job job = {.type = type != ALLFOLD_TYPE_NONE ? type : ALLFOLD_F32, .source = alike.a, .second = alike.b, .rule = &rule,
                            .range = alike.range, .stream = input->stream, .key = input->key, .total = &total};
    if (core_reduce(ctx, &call, &job, NULL, error) == ALLFOLD_OK)
        error->shared = total_finish(&total, &call, &found, error) != ALLFOLD_OK;
    if (error->status == ALLFOLD_OK)
        take_result(input, &total.partial, &found, result);
    compare_close(input, &alike);
    return error->status;
}

/* ---- the places outside */

/* A part of both arrays in host memory. */
struct both_pieces {
    struct piece a, b;
    struct range range;
};

/* The first of a rank's places, in order. */
struct places {
    const struct compare_input *input;
    struct compare_rule rule;
    allfold_type type;
    struct compare_place *list;
    uint64_t count, most;
};

/* An element as compare_largest has values, and as a number. */
static uint64_t element_bits(allfold_type type, const void *elements, uint64_t place, double *real)
{
    switch (type) {
#define REAL(ID, name, ...)                                             \
    case ALLFOLD_##ID:                                                  \
        *real = (double)load_##name(((const element_##name *)elements)[place]); \
        return f64_bits(*real);
        FLOAT_TYPES(REAL)
#undef REAL
    default: break;
    }
    switch (type) {
#define INTEGER(ID, name, numpy, bytes, kind, value)                                                  \
    case ALLFOLD_##ID:                                                                                \
        return (kind) == 'f' ? 0 : (uint64_t)(int64_t)load_##name(((const element_##name *)elements)[place]);
        ALLFOLD_TYPES(INTEGER)
#undef INTEGER
    default: return 0;
    }
}

static int128 integer_of(allfold_type type, bool is_unsigned, uint64_t bits)
{
    return is_unsigned || type == ALLFOLD_UINT64 ? (int128)bits : (int128)(int64_t)bits;
}

/* Whether a pair is outside. */
static bool is_outside(const struct places *places, const struct compare_place *place, double a, double b)
{
    const struct compare_rule *const rule = &places->rule;
    if (is_floating(places->type)) {
        if (a != a || b != b)
            return !(a != a && b != b && rule->equal_nan);
        return a != b && compare_is_outside(rule, fabs(a - b), fabs(b));
    }
    const int128 x = integer_of(places->type, rule->a_unsigned, place->a), y = integer_of(places->type, rule->b_unsigned, place->b), d = x - y;
    return d != 0 && compare_is_outside(rule, compare_real(d < 0 ? -(uint128)d : (uint128)d), compare_real(y < 0 ? -(uint128)y : (uint128)y));
}

static void look_through(struct places *places, const struct both_pieces *both)
{
    uint64_t of_a = 0, of_b = 0;
    for (uint64_t i = 0; i < both->range.count && places->count < places->most; i++) {
        const bool in_a = piece_has(&both->a, both->range.count, i), in_b = piece_has(&both->b, both->range.count, i);
        struct compare_place place = {.index = both->range.first + i, .missing_a = !in_a, .missing_b = !in_b};
        double a = 0, b = 0;
        if (in_a)
            place.a = element_bits(places->type, both->a.elements, of_a++, &a);
        if (in_b)
            place.b = element_bits(places->type, both->b.elements, of_b++, &b);
        if (in_a != in_b || (in_a && is_outside(places, &place, a, b)))
            places->list[places->count++] = place;
    }
}

/* A reader of one array, with room for pieces. */
struct place_reader {
    struct reader *reader;
    void *buffer;
};

static allfold_status open_place_reader(struct source *source, uint64_t length, struct place_reader *opened, struct error *error)
{
    opened->buffer = aligned_alloc(4096, pages(reader_room(length, allfold_type_bytes(source->type))));
    if (opened->buffer == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to list places");
    return source_open_reader(source, &opened->reader, error);
}

static void close_place_reader(struct place_reader *opened)
{
    reader_close(opened->reader);
    free(opened->buffer);
}

static void list_own(struct allfold_context *ctx, const struct compare_alike *alike, struct places *places, struct error *error)
{
    const uint64_t length = pieces_elements(alike->a, places->type, ctx->device->window_bytes), end = alike->range.first + alike->range.count;
    struct place_reader a = {0}, b = {0};
    if (alike->range.count > 0 && open_place_reader(alike->a, length, &a, error) == ALLFOLD_OK)
        open_place_reader(alike->b, length, &b, error);
    for (uint64_t at = alike->range.first; at < end && places->count < places->most && error->status == ALLFOLD_OK; at += length) {
        struct both_pieces both = {.range = {at, u64_min(length, end - at)}};
        both.a.count = both.b.count = both.range.count;
        if (progress_check(ctx->comm.progress, error) == ALLFOLD_OK
            && reader_read(a.reader, &(struct read_request){both.range, 0, a.buffer, false}, &both.a, error) == ALLFOLD_OK
            && reader_read(b.reader, &(struct read_request){both.range, 0, b.buffer, false}, &both.b, error) == ALLFOLD_OK)
            look_through(places, &both);
    }
    close_place_reader(&a);
    close_place_reader(&b);
}

/* Puts the ranks' lists, of which each has its length in the first entry, together. */
static void gather_places(struct places *places, const struct compare_place *all, int ranks)
{
    places->count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const struct compare_place *const own = all + (uint64_t)rank * (places->most + 1);
        const uint64_t taken = u64_min(own->index, places->most - places->count);
        memcpy(places->list + places->count, own + 1, taken * sizeof *own);
        places->count += taken;
    }
}

allfold_status core_compare_list(struct allfold_context *ctx, const struct compare_input *input, uint64_t most, struct compare_place *list,
                                 uint64_t *count, struct error *error)
{
    const size_t bytes = (most + 1) * sizeof *list;
    struct compare_place *const own = calloc(1, bytes);
    struct places places = {input, rule_of(input), compare_type(input->a_type, input->b_type), own + 1, 0, most};
    struct compare_alike alike;
    if (own == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory to list places");
    if (compare_open(ctx, input, true, &alike, error) == ALLFOLD_OK)
        list_own(ctx, &alike, &places, error);
    compare_close(input, &alike);
    struct compare_place empty = {0};
    if (own != NULL)
        own->index = places.count;
    struct compare_place *const all = comm_gather(&ctx->comm, own != NULL ? own : &empty, bytes, error);
    if (all != NULL) {
        places.list = list;
        gather_places(&places, all, ctx->comm.size);
        *count = places.count;
    }
    free(all);
    free(own);
    return error->status;
}

allfold_value compare_value(allfold_type type, uint64_t bits) { return value_of(type, false, bits); }
