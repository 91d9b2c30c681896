/* Looks up types and folds in the public tables, and what results hold. */
#include "base/types.h"

#include "base/elements.h"

#include <string.h>

static const struct {
    const char *name, *numpy;
    size_t bytes;
    char kind;
} types[ALLFOLD_TYPE_COUNT] = {
#define ROW(ID, name, numpy, bytes, kind, value) [ALLFOLD_##ID] = {#name, numpy, bytes, kind},
    ALLFOLD_TYPES(ROW)
#undef ROW
};

static const struct {
    const char *name;
    size_t results;
} folds[] = {
#define ROW(ID, name, monoid, results, text) {#name, results},
    ALLFOLD_FOLDS(ROW)
#undef ROW
};

const char *allfold_type_name(allfold_type type) { return type_exists(type) ? types[type].name : "no type"; }
const char *allfold_fold_name(allfold_fold fold) { return fold < ALLFOLD_FOLD_COUNT ? folds[fold].name : "no fold"; }
size_t allfold_type_bytes(allfold_type type) { return type_exists(type) ? types[type].bytes : 0; }
size_t allfold_result_count(allfold_fold fold) { return fold < ALLFOLD_FOLD_COUNT ? folds[fold].results : 0; }
bool type_exists(allfold_type type) { return type > ALLFOLD_TYPE_NONE && type < ALLFOLD_TYPE_COUNT; }
unsigned type_number_bits(allfold_type type) { return type_kind(type) == 'b' ? 1 : 8 * (unsigned)allfold_type_bytes(type); }
uint64_t type_whole_limit(allfold_type type, bool greatest)
{
    const uint64_t most = UINT64_MAX >> (64 - type_number_bits(type) + (type_kind(type) == 'i'));
    return greatest ? most : type_kind(type) == 'i' ? ~most : 0;
}
char type_kind(allfold_type type) { return types[type].kind; }
const char *type_numpy_name(allfold_type type) { return types[type].numpy; }
double allfold_number(allfold_value value)
{
    switch (value.kind) {
    case ALLFOLD_VALUE_I64: return (double)value.i64;
    case ALLFOLD_VALUE_U64: return (double)value.u64;
    default: return value.f64;
    }
}

const allfold_result *allfold_result_find(const allfold_results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->results[i].name, name) == 0)
            return &results->results[i];
    return NULL;
}

bool type_by_name(const char *name, allfold_type *type)
{
    for (int i = ALLFOLD_TYPE_NONE + 1; i < ALLFOLD_TYPE_COUNT; i++)
        if (strcmp(name, types[i].name) == 0 || strcmp(name, types[i].numpy) == 0) {
            *type = (allfold_type)i;
            return true;
        }
    return false;
}

bool fold_by_name(const char *name, allfold_fold *fold)
{
    for (int i = 0; i < ALLFOLD_FOLD_COUNT; i++)
        if (strcmp(name, folds[i].name) == 0) {
            *fold = (allfold_fold)i;
            return true;
        }
    return false;
}

/* FLOAT_TYPES has as many lines as there are types of that kind. */
#define LINE(...) +1
#define IS_FLOAT(ID, name, numpy, bytes, kind, value) +((kind) == 'f')
_Static_assert(0 FLOAT_TYPES(LINE) == 0 ALLFOLD_TYPES(IS_FLOAT), "FLOAT_TYPES lacks a floating-point type");
#undef LINE
#undef IS_FLOAT

uint64_t type_real_bits(allfold_type type, double x)
{
    uint64_t bits = 0;
#define ROUND(ID, name, ...)                            \
    case ALLFOLD_##ID: {                                \
        const element_##name element = round_##name(x); \
        memcpy(&bits, &element, sizeof element);        \
        break;                                          \
    }
    switch (type) {
        FLOAT_TYPES(ROUND)
    default: break;
    }
#undef ROUND
    return bits;
}
