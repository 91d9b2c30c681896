/* Finishes the partials of a fold along an axis: rows.h. */
#include "fold/rows.h"

#include "base/elements.h"
#include "fold/packed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What type a result has where no format is asked for. */
enum kind { KIND_F64, KIND_COUNT, KIND_ELEMENT, KIND_MAGNITUDE };

static const struct {
    const char *name;
    enum kind kind;
} statistics[] = {{"count", KIND_COUNT}, {"nan_count", KIND_COUNT}, {"sum", KIND_ELEMENT},     {"mean", KIND_F64},
                  {"variance", KIND_F64}, {"min", KIND_ELEMENT},    {"max", KIND_ELEMENT},     {"norm1", KIND_MAGNITUDE},
                  {"norm2", KIND_F64},    {"norminf", KIND_MAGNITUDE}};

static enum kind kind_of(allfold_fold fold, size_t i)
{
    switch (fold) {
    case ALLFOLD_STATS: return statistics[i].kind;
    case ALLFOLD_MEAN:
    case ALLFOLD_VARIANCE:
    case ALLFOLD_STD:
    case ALLFOLD_NORM2:
    case ALLFOLD_LOGSUMEXP: return KIND_F64;
    case ALLFOLD_NORM1:
    case ALLFOLD_NORMINF: return KIND_MAGNITUDE;
    default: return KIND_ELEMENT;
    }
}

const char *rows_name(allfold_fold fold, size_t i) { return fold == ALLFOLD_STATS ? statistics[i].name : "value"; }

allfold_type rows_type(allfold_fold fold, size_t i, allfold_type type, allfold_type asked)
{
    const enum kind kind = kind_of(fold, i);
    if (kind == KIND_COUNT)
        return ALLFOLD_UINT64;
    if (asked != ALLFOLD_TYPE_NONE)
        return asked;
    if (kind == KIND_F64 || type_kind(type) == 'f')
        return ALLFOLD_F64;
    return kind == KIND_ELEMENT && type_kind(type) == 'i' ? ALLFOLD_INT64 : ALLFOLD_UINT64;
}

bool rows_indexed(allfold_fold fold, size_t i)
{
    const char *const name = rows_name(fold, i);
    return fold == ALLFOLD_ARGMIN || fold == ALLFOLD_ARGMAX || strcmp(name, "min") == 0 || strcmp(name, "max") == 0;
}

/* value has been rounded to the type already. */
static void store_value(void *values, uint64_t place, allfold_type type, const allfold_value *value)
{
    if (!real_store(values, place, type, value->f64))
        ((uint64_t *)values)[place] = value->u64; /* or an int64's bits */
}

static const struct fold_field *field_of(const struct fold_results *found, const char *name)
{
    for (int i = 0; i < found->field_count; i++)
        if (strcmp(found->fields[i].name, name) == 0)
            return &found->fields[i];
    return NULL;
}

/* The type of the values that elements stand for. */
static allfold_type value_type(const struct rows *rows) { return rows->call->packing != NULL ? ALLFOLD_F64 : rows->type; }

/* Stores the results of one row. What a row of NaN or of nothing does not have is NaN. */
static allfold_status store_row(const struct rows *rows, const struct fold_results *found, uint64_t place, struct error *error)
{
    const allfold_fold fold = rows->call->fold;
    const allfold_value nan = {.kind = ALLFOLD_VALUE_F64, .f64 = NAN};
    for (size_t i = 0; i < fold_result_count(fold); i++) {
        const struct rows_output *const output = &rows->outputs[i];
        if (output->values == NULL && output->indices == NULL)
            continue;
        const struct fold_field *const only = found->field_count > 0 ? &found->fields[0] : NULL;
        const struct fold_field *const field = fold != ALLFOLD_STATS ? only : field_of(found, statistics[i].name);
        const allfold_type type = rows_type(fold, i, value_type(rows), rows->call->result_type);
        const char *const name = fold == ALLFOLD_STATS ? statistics[i].name : allfold_fold_name(fold);
        const bool integer = output->values != NULL && type_kind(type) != 'f';
        if (field == NULL && integer)
            return error_set(error, ALLFOLD_NO_VALUE, "%s of no elements does not exist, and no integer says so" ASK_FOR_FLOATING, name);
        if (integer && field->value.kind == ALLFOLD_VALUE_F64) /* stats rounds it where it does not fit */
            return error_set(error, ALLFOLD_OVERFLOW, "%s is about %.17g, which %s cannot hold" ASK_FOR_FLOATING, name, field->value.f64,
                             allfold_type_name(type));
        if (output->values != NULL)
            store_value(output->values, place, type, field != NULL ? &field->value : &nan);
        if (output->indices != NULL)
            output->indices[place] = field != NULL ? (int64_t)field->index : -1;
    }
    return ALLFOLD_OK;
}

static bool is_folded(const struct rows_shape *shape, uint32_t dimension) { return dimension >= shape->first && dimension <= shape->last; }

/* How far apart results are that differ by 1 in this coordinate, in the order in which the elements lie. */
static uint64_t result_step(const struct rows_shape *shape, uint32_t dimension)
{
    uint64_t step = 1;
    for (uint32_t i = 0; i < shape->dimensions; i++)
        if (!is_folded(shape, i) && (shape->fortran_order ? i < dimension : i > dimension))
            step *= shape->extents[i];
    return step;
}

/* The coordinates of the result that has this place in that order: "3, :, 7". */
static void name_result(const struct rows_shape *shape, uint64_t place, char *text, size_t bytes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < shape->dimensions && used < bytes; i++) {
        const char *const comma = i > 0 ? ", " : "";
        used += (size_t)(is_folded(shape, i) ? snprintf(text + used, bytes - used, "%s:", comma)
                                             : snprintf(text + used, bytes - used, "%s%" PRIu64, comma,
                                                        place / result_step(shape, i) % shape->extents[i]));
    }
}

/* An error of result r, with its place among those of the whole array, unless it has no dimensions. */
static allfold_status refuse_result(const struct rows *rows, uint64_t r, const struct error *own, struct error *error)
{
    const uint64_t place = rows->whole_first + r / rows->run * rows->inner + r % rows->run;
    const struct rows_shape planes = {(const uint64_t[]){UINT64_MAX, 1, rows->inner}, 3, 1, 1, false};
    char name[256] = "";
    name_result(rows->shape != NULL ? rows->shape : &planes, place, name, sizeof name);
    return error_set(error, own->status, name[0] != '\0' ? "result [%s]: %s" : "%s%s", name, own->text);
}

/* The results of a row of packed integers. */
static allfold_status finish_packed(const struct rows *rows, const struct folded *row, struct fold_results *found, struct error *error)
{
    struct partial values;
    memcpy(&values, row->partial, monoid_bytes(fold_monoid(rows->call->fold, rows->call->level, row->type), row->type));
    packed_sum_unpack(rows->call->packing, row->count, &values);
    return fold_finish(rows->call, &(struct folded){ALLFOLD_F64, row->count, &values}, found, error);
}

/* The results of a row whose elements are all missing: there may be none. */
static allfold_status finish_nothing(const struct rows *rows, struct fold_results *found, struct error *error)
{
    struct error none = {0};
    struct partial nothing;
    monoid_identity(fold_monoid(rows->call->fold, rows->call->level, value_type(rows)), value_type(rows), &nothing);
    found->field_count = 0;
    if (fold_finish(rows->call, &(struct folded){value_type(rows), 0, &nothing}, found, &none) != ALLFOLD_NO_VALUE
        && none.status != ALLFOLD_OK)
        *error = none;
    return error->status;
}

static allfold_status finish_row(const struct rows *rows, const struct folded *row, struct fold_results *found, struct error *error)
{
    if (rows->counts != NULL && row->count == 0)
        return finish_nothing(rows, found, error);
    return rows->call->packing != NULL ? finish_packed(rows, row, found, error) : fold_finish(rows->call, row, found, error);
}

allfold_status rows_finish(const struct rows *rows, struct range range, struct error *error)
{
    const size_t stride = partial_stride(fold_monoid(rows->call->fold, rows->call->level, rows->type), rows->type);
    struct fold_results found;
    struct error own = {0};
    for (uint64_t r = range.first; r < range.first + range.count; r++) {
        const uint64_t place = rows->first + r / rows->run * rows->step + r % rows->run;
        const struct folded row = {rows->type, rows->counts != NULL ? rows->counts[r] : rows->count,
                                   (const struct partial *)(rows->partials + r * stride)};
        if (finish_row(rows, &row, &found, &own) != ALLFOLD_OK
            || store_row(rows, &found, place, &own) != ALLFOLD_OK)
            return refuse_result(rows, r, &own, error);
    }
    return ALLFOLD_OK;
}
