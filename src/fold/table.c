/* The table of folds: every monoid at every value type, made from the lists in monoids.h and allfold.h. */
#include <stdio.h>

#include "fold/finish.h"
#include "fold/folds.h"
#include "fold/softmax_constants.h"
#include "fold/table.h"

static const enum value value_of_type[] = {
#define ROW(ID, name, numpy, bytes, kind, value) VALUE_##value,
    ALLFOLD_TYPES(ROW)
#undef ROW
};

/* One line a (monoid, value type): its functions behind untyped pointers. */
struct monoid_row {
    size_t bytes;
    void (*identity)(void *partial);
    void (*combine)(void *a, const void *b);
    void (*shift)(void *partial, uint64_t offset); /* NULL where the partial holds no indices */
};

#define DEFINE(monoid, value)                                                                                         \
    _Static_assert(sizeof(monoid##_##value) <= PARTIAL_BYTES_MAX, "PARTIAL_BYTES_MAX is too small for " #monoid);      \
    static void identity_##monoid##_##value(void *partial) { *(monoid##_##value *)partial = monoid##_identity_##value(); } \
    static void combine_##monoid##_##value(void *a, const void *b) { monoid##_combine_##value(a, b); }
#define ROW(monoid, indexed, nan) VALUES(DEFINE, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE

#define DEFINE_0(monoid, value)
#define DEFINE_1(monoid, value) \
    static void shift_##monoid##_##value(void *partial, uint64_t offset) { monoid##_shift_##value(partial, offset); }
#define ROW(monoid, indexed, nan) VALUES(DEFINE_##indexed, monoid)
MONOIDS(ROW)
#undef ROW
#undef DEFINE_0
#undef DEFINE_1

#define CELL(monoid, value, shift) \
    [VALUE_##value] = {sizeof(monoid##_##value), identity_##monoid##_##value, combine_##monoid##_##value, shift},
#define CELL_0(monoid, value) CELL(monoid, value, NULL)
#define CELL_1(monoid, value) CELL(monoid, value, shift_##monoid##_##value)
static const struct {
    bool nan;
    struct monoid_row rows[VALUE_COUNT];
} monoids[] = {
#define ROW(monoid, indexed, nan) {nan, {VALUES(CELL_##indexed, monoid)}},
    MONOIDS(ROW)
#undef ROW
};
#undef CELL
#undef CELL_0
#undef CELL_1

typedef allfold_status finish_function(const void *, const struct finish *, allfold_result *, struct error *);

#define DEFINE(fold, value)                                                                          \
    static allfold_status finish_##fold##_##value(const void *partial, const struct finish *finish,          \
                                                  allfold_result *result, struct error *error)               \
    {                                                                                                        \
        return fold##_finish_##value(partial, finish, result, error);                                        \
    }
#define ROW(ID, name, monoid, text) VALUES(DEFINE, name)
ALLFOLD_FOLDS(ROW)
#undef ROW
#undef DEFINE

#define CELL(fold, value) [VALUE_##value] = finish_##fold##_##value,
static const struct {
    enum monoid monoid;
    const char *text;
    finish_function *finish[VALUE_COUNT];
} folds[] = {
#define ROW(ID, name, monoid, text) {MONOID_##monoid, text, {VALUES(CELL, name)}},
    ALLFOLD_FOLDS(ROW)
#undef ROW
};
#undef CELL

static const struct monoid_row *row(enum monoid monoid, allfold_type type)
{
    return &monoids[monoid].rows[value_of_type[type]];
}

enum value type_value(allfold_type type) { return value_of_type[type]; }

size_t monoid_bytes(enum monoid monoid, allfold_type type) { return row(monoid, type)->bytes; }

void monoid_identity(enum monoid monoid, allfold_type type, struct partial *partial)
{
    row(monoid, type)->identity(partial->bytes);
}

void monoid_combine(enum monoid monoid, allfold_type type, struct partial *a, const struct partial *b)
{
    row(monoid, type)->combine(a->bytes, b->bytes);
}

void monoid_shift(enum monoid monoid, allfold_type type, struct partial *partial, uint64_t offset)
{
    if (row(monoid, type)->shift != NULL)
        row(monoid, type)->shift(partial->bytes, offset);
}

enum monoid fold_monoid(allfold_fold fold) { return folds[fold].monoid; }
bool fold_has_nan_choice(allfold_fold fold) { return monoids[folds[fold].monoid].nan; }
const char *fold_text(allfold_fold fold) { return folds[fold].text; }

allfold_status fold_finish(allfold_fold fold, allfold_type type, const struct partial *partial, uint64_t count,
                           allfold_nan nan, allfold_result *result, struct error *error)
{
    const struct finish finish = {count, nan};
    allfold_result found = {.count = count};
    const allfold_status status = folds[fold].finish[value_of_type[type]](partial->bytes, &finish, &found, error);
    if (status == ALLFOLD_OK)
        *result = found;
    return status;
}

void softmax_constants_set(const struct partial *partial, struct softmax_constants *c)
{
    const sumexp_f32 *sumexp = (const void *)partial->bytes;
    softmax_constants_from(sumexp->max, &sumexp->sum, c);
    c->log_sum = sumexp_log(&sumexp->sum);
}
