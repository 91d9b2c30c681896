/* Finishes the partials of a fold along an axis: rows.h. */
#include "fold/rows.h"

#include "fold/axis.h"
#include "fold/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

allfold_type rows_type(allfold_fold fold, size_t i, allfold_type type, allfold_type asked)
{
    const enum result_kind kind = fold_result_kind(fold, i);
    if (kind == RESULT_COUNT)
        return ALLFOLD_UINT64;
    if (asked != ALLFOLD_TYPE_NONE)
        return asked;
    if (kind == RESULT_REAL || type_kind(type) == 'f')
        return ALLFOLD_F64;
    return kind != RESULT_MAGNITUDE && type_kind(type) == 'i' ? ALLFOLD_INT64 : ALLFOLD_UINT64;
}

/* The type of the values that elements stand for. */
static allfold_type value_type(const struct rows *rows) { return rows->call->packing != NULL ? ALLFOLD_F64 : rows->type; }

/* Why a result of a row cannot be stored. */
static allfold_status refuse_value(allfold_fold fold, size_t i, const struct fold_field *field, allfold_type type, struct error *error)
{
    const char *const name = fold == ALLFOLD_STATS ? fold_result_name(fold, i) : allfold_fold_name(fold);
    if (field == NULL)
        return error_set(error, ALLFOLD_NO_VALUE, "%s of no elements does not exist, and no integer says so" ASK_FOR_FLOATING, name);
    return error_set(error, ALLFOLD_OVERFLOW, "%s is about %.17g, which %s cannot hold" ASK_FOR_FLOATING, name, field->value.f64,
                     allfold_type_name(type)); /* stats rounds it where it does not fit */
}

/* Stores the results of one row. */
static allfold_status store_row(const struct rows *rows, const struct fold_results *found, uint64_t place, struct error *error)
{
    const allfold_fold fold = rows->call->fold;
    for (size_t i = 0; i < fold_result_count(fold); i++) {
        const struct axis_output output = {rows->outputs[i].values, rows->outputs[i].indices,
                                           rows_type(fold, i, value_type(rows), rows->call->result_type)};
        const struct fold_field *const field = result_field(found, (int)i);
        if (!result_store(field, &output, place))
            return refuse_value(fold, i, field, output.type, error);
    }
    return ALLFOLD_OK;
}

/* How far apart results are that differ by 1 in this coordinate, in the order in which the elements lie. */
static uint64_t result_step(const struct rows_shape *shape, uint32_t dimension)
{
    uint64_t step = 1;
    for (uint32_t i = 0; i < shape->dimensions; i++)
        if (!rows_fold(shape, i) && (shape->fortran_order ? i < dimension : i > dimension))
            step *= shape->extents[i];
    return step;
}

/* The coordinates of the result that has this place in that order: "3, :, 7". */
static void name_result(const struct rows_shape *shape, uint64_t place, char *text, size_t bytes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < shape->dimensions && used < bytes; i++) {
        const char *const comma = i > 0 ? ", " : "";
        used += (size_t)(rows_fold(shape, i) ? snprintf(text + used, bytes - used, "%s:", comma)
                                             : snprintf(text + used, bytes - used, "%s%" PRIu64, comma,
                                                        place / result_step(shape, i) % shape->extents[i]));
    }
}

/* An error of result r, with its place among those of the whole array, unless it has no dimensions. */
static allfold_status refuse_result(const struct rows *rows, uint64_t r, const struct error *own, struct error *error)
{
    const uint64_t place = rows->whole_first + result_place(r, rows->run, rows->inner);
    const struct rows_shape planes = {(const uint64_t[]){UINT64_MAX, 1, rows->inner}, 3, 1 << 1, false};
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
        const uint64_t place = rows->first + result_place(r, rows->run, rows->step);
        const struct folded row = {rows->type, rows->counts != NULL ? rows->counts[r] : rows->count,
                                   (const struct partial *)(rows->partials + r * stride)};
        if (finish_row(rows, &row, &found, &own) != ALLFOLD_OK
            || store_row(rows, &found, place, &own) != ALLFOLD_OK)
            return refuse_result(rows, r, &own, error);
    }
    return ALLFOLD_OK;
}
