/* The table of folds: every monoid at every value type, made from the lists in monoids.h and allfold.h. */
#include <stdio.h>

#include "fold/finish.h"
#include "fold/folds.h"
#include "fold/softmax_constants.h"
#include "fold/table.h"

/* One line a (monoid, value type): its functions behind untyped pointers. */
struct monoid_row {
    size_t bytes;
    void (*identity)(void *partial);
    void (*combine)(void *a, const void *b);
    int (*indices)(void *partial, uint64_t *indices[]);
};

enum {
#define ROW(monoid, ...) monoid##_bytes_max = STRUCT_BYTES_MAX,
    STRUCT_MONOIDS(ROW)
#undef ROW
#define ROW(monoid, ...) monoid##_bytes_max = PARTIAL_BYTES_MAX,
    WORD_MONOIDS(ROW) WEIGHTED_MONOIDS(ROW)
#undef ROW
};
#define DEFINE(monoid, value)                                                                                         \
    _Static_assert(sizeof(monoid##_##value) <= monoid##_bytes_max, "more room is needed for " #monoid);                  \
    static void identity_##monoid##_##value(void *partial) { *(monoid##_##value *)partial = monoid##_identity_##value(); } \
    static void combine_##monoid##_##value(void *a, const void *b) { monoid##_combine_##value(a, b); }
#define ROW(monoid, values, ...) VALUES_##values(DEFINE, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE

#define DEFINE_0(monoid, value) \
    static int indices_##monoid##_##value(void *partial, uint64_t *indices[]) { return (void)partial, (void)indices, 0; }
#define DEFINE_1(monoid, value) \
    static int indices_##monoid##_##value(void *partial, uint64_t *indices[]) { return monoid##_indices_##value(partial, indices); }
#define ROW(monoid, values, operands, indexed, ...) VALUES_##values(DEFINE_##indexed, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE_0
#undef DEFINE_1

#define CELL(monoid, value)                                                                              \
    [VALUE_##value] = {sizeof(monoid##_##value), identity_##monoid##_##value, combine_##monoid##_##value, \
                       indices_##monoid##_##value},
static const struct monoid_row monoids[MONOID_COUNT][VALUE_COUNT] = {
#define ROW(monoid, values, ...) {VALUES_##values(CELL, monoid)},
    MONOIDS(ROW)
#undef ROW
};
#undef CELL

#define ALL_FOLDS(X) ALLFOLD_FOLDS(X) OTHER_FOLDS(X)
#define ROW(ID, name, monoid, results, text) _Static_assert(results <= FOLD_RESULTS_MAX, "more room is needed for " #name);
ALL_FOLDS(ROW)
#undef ROW

typedef allfold_status finish_function(const void *, const struct finish *);

#define DEFINE(fold, value)                                                                          \
    static allfold_status finish_##fold##_##value(const void *partial, const struct finish *finish)         \
    {                                                                                                        \
        return fold##_finish_##value(partial, finish);                                                       \
    }
#define ROW(ID, name, monoid, results, text) VALUES(DEFINE, name)
ALL_FOLDS(ROW)
#undef ROW
#define ROW(when, ID, name, monoid, values) VALUES_##values(DEFINE, name)
FOLD_METHODS(ROW)
#undef ROW
#undef DEFINE

/* One method of a fold. */
struct method {
    enum monoid monoid;
    finish_function *finish[VALUE_COUNT + 1]; /* NULL if there is no such method; of ALLFOLD_TYPE_NONE there is none */
};
#define CELL(fold, value) [VALUE_##value] = finish_##fold##_##value,
static const struct {
    const char *text;
    size_t results;
    struct method usual;
} folds[] = {
#define ROW(ID, name, monoid, results, text) {text, results, {MONOID_##monoid, {VALUES(CELL, name)}}},
    ALL_FOLDS(ROW)
#undef ROW
};
static const struct method other_methods[][FOLD_COUNT] = {
#define ROW(when, ID, name, monoid, values) [ALLFOLD_LEVEL_##when][ID] = {MONOID_##monoid, {VALUES_##values(CELL, name)}},
    FOLD_METHODS(ROW)
#undef ROW
};
#undef CELL

static const struct method *method_of(allfold_fold fold, allfold_level level, allfold_type type)
{
    const struct method *const other = &other_methods[level][fold];
    return other->finish[type_value(type)] != NULL ? other : &folds[fold].usual;
}

static const struct monoid_row *row(enum monoid monoid, allfold_type type)
{
    return &monoids[monoid][type_value(type)];
}

size_t monoid_bytes(enum monoid monoid, allfold_type type) { return row(monoid, type)->bytes; }
size_t partial_stride(enum monoid monoid, allfold_type type) { return partial_bytes_aligned(monoid_bytes(monoid, type)); }

struct compare_ends *compare_ends_of(allfold_type type, struct partial *partial)
{
    return (struct compare_ends *)(void *)(partial->bytes + monoid_bytes(MONOID_compare, type) - sizeof(struct compare_ends));
}

void partial_take_mark(enum monoid monoid, void *partial, uint64_t mark)
{
    mark_combine(monoid == MONOID_logits ? &((struct logits *)partial)->target : &((struct logits_exact *)partial)->target, mark);
}

void monoid_identity(enum monoid monoid, allfold_type type, struct partial *partial)
{
    row(monoid, type)->identity(partial->bytes);
}

void monoid_combine(enum monoid monoid, allfold_type type, struct partial *a, const struct partial *b)
{
    row(monoid, type)->combine(a->bytes, b->bytes);
}

int monoid_indices(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t *indices[MONOID_INDICES_MAX])
{
    return row(monoid, type)->indices(partial->bytes, indices);
}

void monoid_shift(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t offset)
{
    uint64_t *indices[MONOID_INDICES_MAX];
    const int count = monoid_indices(monoid, type, partial, indices);
    for (int i = 0; i < count; i++)
        *indices[i] += *indices[i] == ALLFOLD_NO_INDEX ? 0 : offset;
}

allfold_level fold_level(allfold_fold fold, allfold_level level)
{
    return fold_has_level_choice(fold) ? level : monoid_facts[folds[fold].usual.monoid].level;
}
enum monoid fold_monoid(allfold_fold fold, allfold_level level, allfold_type type) { return method_of(fold, level, type)->monoid; }
size_t fold_result_count(allfold_fold fold) { return folds[fold].results; }
bool fold_has_level_choice(allfold_fold fold) { return other_methods[ALLFOLD_LEVEL_EXACT][fold].finish[VALUE_f32] != NULL; }
bool fold_has_nan_choice(allfold_fold fold) { return monoid_facts[folds[fold].usual.monoid].nan; }
bool fold_has_variance(allfold_fold fold) { return folds[fold].usual.monoid == MONOID_stats; }
const char *fold_text(allfold_fold fold) { return folds[fold].text; }

static const struct {
    const char *name;
    enum result_kind kind;
} statistics[] = {
#define ROW(ID, name, kind) {#name, RESULT_##kind},
    STATISTICS(ROW)
#undef ROW
};

const char *fold_result_name(allfold_fold fold, size_t i) { return fold == ALLFOLD_STATS ? statistics[i].name : "value"; }

enum result_kind fold_result_kind(allfold_fold fold, size_t i)
{
    switch (fold) { /* no default: the compiler names a fold that is forgotten */
    case ALLFOLD_STATS: return statistics[i].kind;
    case ALLFOLD_MEAN:
    case ALLFOLD_VARIANCE:
    case ALLFOLD_STD:
    case ALLFOLD_NORM2:
    case ALLFOLD_LOGSUMEXP: return RESULT_REAL;
    case ALLFOLD_NORM1:
    case ALLFOLD_NORMINF: return RESULT_MAGNITUDE;
    case ALLFOLD_SUM:
    case ALLFOLD_PROD:
    case ALLFOLD_MIN:
    case ALLFOLD_MAX: return RESULT_ELEMENT;
    case ALLFOLD_ARGMIN:
    case ALLFOLD_ARGMAX: return RESULT_PLACED;
    case ALLFOLD_FOLD_COUNT: break;
    }
    return (int)fold == FOLD_DOT || (int)fold == FOLD_COMPARE ? RESULT_ELEMENT : RESULT_REAL; /* of OTHER_FOLDS */
}

/* Rounds results to the caller's result type, if they are not rounded to it yet. */
static void round_fields(struct fold_results *result, allfold_fold fold, allfold_type type)
{
    for (int i = 0; i < result->field_count; i++) {
        allfold_value *const value = &result->fields[i].value;
        if (fold_result_kind(fold, (size_t)result->fields[i].which) == RESULT_COUNT)
            continue;
        if (value->kind == ALLFOLD_VALUE_F64) {
            value->f64 = exact_round(value->f64, type);
            continue;
        }
        const struct exact_total total
            = exact_total_of_integer(value->kind == ALLFOLD_VALUE_I64 ? (int128)value->i64 : (int128)value->u64);
        *value = (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = exact_total_round(&total, false, type)};
    }
}

allfold_status fold_finish(const struct fold_call *call, const struct folded *whole, struct fold_results *result, struct error *error)
{
    const bool rounded = call->result_type != ALLFOLD_TYPE_NONE;
    struct fold_results found; /* setting it to zero takes as long as a short row of an axis */
    found.count = whole->count;
    found.level = fold_level(call->fold, call->level);
    found.field_count = 0;
    const struct finish finish = {whole->count, call->nan, call->ddof, rounded ? call->result_type : ALLFOLD_F64, rounded, &found, error, call};
    const struct method *const method = method_of(call->fold, call->level, whole->type);
    if (monoid_has_room(method->monoid, whole->count, error) != ALLFOLD_OK)
        return error->status;
    const allfold_status status = method->finish[type_value(whole->type)](whole->partial->bytes, &finish);
    if (status == ALLFOLD_OK) {
        if (rounded)
            round_fields(&found, call->fold, call->result_type);
        result->count = found.count;
        result->level = found.level;
        result->field_count = found.field_count;
        for (int i = 0; i < found.field_count; i++) {
            result->fields[i] = found.fields[i];
            result->fields[i].name = fold_result_name(call->fold, (size_t)found.fields[i].which);
        }
    }
    return status;
}

allfold_status monoid_has_room(enum monoid monoid, uint64_t count, struct error *error)
{
    const int most = monoid_facts[monoid].most;
    if (most == 64 || count <= (uint64_t)1 << most)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_UNSUPPORTED, "at most 2^%d exponentials in f64 are added up exactly, found %" PRIu64
                     ": use --sum=fast (in C ALLFOLD_LEVEL_FAST), but for log-softmax", most, count);
}

_Static_assert(sizeof(struct exp_partial) == sizeof(sumexp_f32) && sizeof(struct exp_partial) == sizeof(sumexp_f64_u64), "one layout");

void softmax_constants_set(enum monoid monoid, const struct partial *partial, struct softmax_constants *c)
{
    softmax_constants_of(partial->bytes, monoid_facts[monoid].level == ALLFOLD_LEVEL_EXACT, monoid_facts[monoid].terms != TERMS_F64, true, c);
}
