/* What calls of allfold.h work on: elements in the caller's memory, or a source, which is opened for the call. See api.h. */
#include "api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the caller's memory */

/* Gives elements where they lie. */
static allfold_status memory_read(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    const struct source *const source = reader->source;
    (void)error;
    *piece = (struct piece){.elements = (const char *)source->memory + request->range.first * allfold_type_bytes(source->type),
                            .count = request->range.count};
    return ALLFOLD_OK;
}

struct source api_part_source(const allfold_array *part, const struct error *error)
{
    const bool usable = error->status == ALLFOLD_OK;
    return (struct source){
        .read = memory_read, .type = usable ? part->type : ALLFOLD_F32, .granule = 1, .memory = usable ? part->data : NULL};
}

void api_check_part(const allfold_array *part, struct error *error)
{
    if (part == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the array is NULL: pass a struct with count 0 for an empty part");
    else if (part->type == ALLFOLD_TYPE_NONE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the array has no element type: expected .type, such as ALLFOLD_F32");
    else if (part->type == ALLFOLD_SOURCE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the array is a source, which this call does not take: expected elements in memory, or another "
                  "call (for folds along axes allfold_reduce_nd)");
    else if (!type_exists(part->type))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "element type %d does not exist", (int)part->type);
    else if (part->count > 0 && part->data == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "data is NULL though count is not 0");
    else if (part->count > (uint64_t)PTRDIFF_MAX / allfold_type_bytes(part->type))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "count is larger than any memory");
    else if (part->count > 0 && (uintptr_t)part->data % allfold_type_bytes(part->type) != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "data is not aligned to its element size of %zu bytes",
                  allfold_type_bytes(part->type));
}

/* ---- either */

void api_operand_take(const allfold_array *given, struct api_operand *operand, struct error *error)
{
    const bool is_source = given != NULL && given->type == ALLFOLD_SOURCE;
    *operand = (struct api_operand){.given = given, .of = is_source ? given->data : NULL, .type = ALLFOLD_F32};
    if (!is_source)
        api_check_part(given, error);
    else if (given->data == NULL || given->count != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "a source is its data, with count 0: found %s", given->data == NULL ? "NULL" : "another count");
    if (error->status != ALLFOLD_OK)
        return;
    operand->type = is_source ? operand->of->info.type : given->type;
    operand->count = is_source ? operand->of->info.count : given->count;
}

void api_operands_check(const struct api_operand *a, const struct api_operand *b, struct error *error)
{
    if (error->status == ALLFOLD_OK && (a->of == NULL) != (b->of == NULL))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "one array is a source, the other lies in memory: expected two of one kind");
    if (error->status != ALLFOLD_OK || a->of == NULL)
        return;
    const struct array_info *const x = &a->of->info, *const y = &b->of->info;
    if (x->dimensions != y->dimensions || memcmp(x->shape, y->shape, x->dimensions * sizeof *x->shape) != 0
        || (x->dimensions > 1 && x->fortran_order != y->fortran_order))
        error_set(error, ALLFOLD_BAD_INPUT, "%.150s and %.150s: expected arrays of one shape, whose elements lie in one order", a->of->name, b->of->name);
}

/* The description as it is opened, which may be another than the source's own. */
static void open_source(const struct allfold_context *context, enum api_use use, struct api_operand *operand, struct error *error)
{
    const struct allfold_source *const of = operand->of;
    struct array_info *const info = malloc(sizeof *info);
    if (info == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory to open %.200s", of->name);
        return;
    }
    memcpy(info, &of->info, sizeof *info);
    operand->info = info;
    if (use == API_SUM)
        operand->packing = of->keep_packed(info);
    if (use == API_WRITE && info->missing != MISSING_KEEP)
        info->missing = MISSING_REFUSE; /* every place of the output needs a value */
    operand->type = info->type;
    operand->range = array_part(info, (uint64_t)context->comm.rank, (uint64_t)context->comm.size);
    operand->key = of->key;
    of->open(info, context->comm.rank == 0, &operand->source, error);
}

void api_operand_open(const struct allfold_context *context, enum api_use use, struct api_operand *operand, struct error *error)
{
    if (operand->of != NULL && error->status == ALLFOLD_OK) {
        open_source(context, use, operand, error);
        return;
    }
    operand->memory = api_part_source(operand->given, error);
    operand->source = &operand->memory;
    operand->type = operand->memory.type;
    operand->range = (struct range){0, error->status == ALLFOLD_OK ? operand->count : 0};
}

void api_operand_close(struct api_operand *operand)
{
    if (operand->source != &operand->memory)
        source_close(operand->source);
    free(operand->info);
}

struct job api_operand_job(const struct api_operand *operand, void *stream)
{
    return (struct job){.type = operand->type, .source = operand->source, .range = operand->range, .stream = stream, .key = operand->key};
}

struct compare_input api_operand_pair(const struct api_operand *a, const struct api_operand *b, void *stream)
{
    return (struct compare_input){.a = a->source, .b = b->source, .a_type = a->type, .b_type = b->type, .count = a->count, .range = a->range,
                                  .has_part = a->of == NULL, .key = (a->key ^ 3 * b->key) << 1 >> 1, .stream = stream};
}

struct fold_call api_operand_call(const struct api_operand *operand, allfold_fold fold, const allfold_call *call)
{
    return (struct fold_call){.fold = fold, .nan = call->nan, .result_type = call->result_type, .ddof = call->ddof, .packing = operand->packing,
                              .place = operand->of != NULL ? operand->of->place : NULL, .array = operand->info};
}

void api_refuse_device(const struct allfold_context *context, const void *memory, allfold_status status, const char *what, struct error *error)
{
    enum place place = PLACE_HOST;
    if (error->status != ALLFOLD_OK || memory == NULL || context->device == NULL || !context->device->backend->own_memory
        || context->device->backend->locate(context->device, memory, &place, error) != ALLFOLD_OK)
        return;
    if (place == PLACE_DEVICE)
        error_set(error, status, "%s: expected host memory, found memory of the device", what);
}
