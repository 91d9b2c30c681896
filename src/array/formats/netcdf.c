/* Classic NetCDF: variables of a shape each, big-endian. Those that have the record dimension lie interleaved, record by record. */
#include "array/formats/cdf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool recognises_cdf(const struct input_file *file)
{
    return file->head_bytes >= 4 && memcmp(file->head, "CDF", 3) == 0 && (file->head[3] == 1 || file->head[3] == 2 || file->head[3] == 5);
}

__attribute__((format(printf, 3, 4)))
static allfold_status refuse(const struct cdf_attributes *a, struct error *error, const char *expected, ...)
{
    char text[ALLFOLD_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, expected);
    vsnprintf(text, sizeof text, expected, arguments);
    va_end(arguments);
    return error_set(error, ALLFOLD_UNSUPPORTED, "%s: variable '%s': expected %s", file_shown(a->file->name),
                     file_shown(a->variable->name), text);
}

/* Where the elements lie, all within the file. */
static allfold_status set_layout(const struct cdf_attributes *a, struct array_info *info, struct error *error)
{
    const struct cdf_variable *const v = a->variable;
    const uint64_t records = v->record ? a->cdf->records : 1, stride = v->record ? a->cdf->record_bytes : 0;
    uint64_t end = 0;
    info->layout = (struct array_layout){.offset = v->begin, .swapped = allfold_type_bytes(info->type) > 1};
    if (v->record && v->bytes != stride) {
        info->layout.run = v->count;
        info->layout.stride = stride;
    }
    if (records == 0 || v->count == 0)
        return ALLFOLD_OK;
    if (__builtin_mul_overflow(records - 1, stride, &end) || __builtin_add_overflow(end, v->begin, &end)
        || __builtin_add_overflow(end, v->bytes, &end) || end > a->file->bytes || v->begin < a->cdf->header_bytes)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: variable '%s': expected %" PRIu64 " records of %" PRIu64 " bytes from byte %" PRIu64
                         " on, found a file of %" PRIu64 " bytes with a header of %" PRIu64, file_shown(a->file->name), file_shown(v->name),
                         records, v->bytes, v->begin, a->file->bytes, a->cdf->header_bytes);
    return ALLFOLD_OK;
}

/* Sets all of *info but its names. */
static allfold_status describe_variable(struct cdf_attributes *a, struct array_info *info, struct error *error)
{
    const struct cdf_variable *const v = a->variable;
    struct error why = {.status = ALLFOLD_OK};
    if (v->dimensions > ARRAY_DIMENSIONS_MAX)
        return refuse(a, error, "at most %d dimensions, found %" PRIu64, ARRAY_DIMENSIONS_MAX, v->dimensions);
    info->dimensions = (uint32_t)v->dimensions;
    for (uint32_t i = 0; i < info->dimensions; i++)
        info->shape[i] = a->cdf->dimensions[v->ids[i]].length;
    info->type = cdf_type(v->file_type);
    if (info->type == ALLFOLD_TYPE_NONE)
        return refuse(a, error, "numbers, found characters");
    if (!array_count(info->shape, info->dimensions, sizeof(double), &info->count)) /* packed values are unpacked */
        return refuse(a, error, "a shape of " ARRAY_COUNT_RULE " of f64, found a larger one");
    if (set_layout(a, info, error) != ALLFOLD_OK)
        return error->status;
    if (encoding_describe(cdf_find_attribute, a, &info->type, &info->encoding, &why) != ALLFOLD_OK)
        return error_set(error, why.status, "%s: variable '%s': %s", file_shown(a->file->name), file_shown(v->name), why.text);
    return ALLFOLD_OK;
}

/* The message without the names in front, which "': " ends. */
static const char *reason(const struct error *error)
{
    const char *const end = strstr(error->text, "': ");
    return end != NULL ? end + strlen("': ") : error->text;
}

static void visit_variable(struct cdf_attributes *a, array_visit *visit, void *user)
{
    const struct cdf_variable *const v = a->variable;
    const char *names[ARRAY_DIMENSIONS_MAX];
    char missing[ENCODING_TEXT_BYTES], packing[ENCODING_TEXT_BYTES];
    struct error why = {.status = ALLFOLD_OK};
    struct array_info info;
    memset(&info, 0, sizeof info);
    describe_variable(a, &info, &why);
    encoding_missing_text(&info.encoding, missing);
    encoding_packing_text(&info.encoding, packing);
    for (uint32_t i = 0; i < info.dimensions; i++)
        names[i] = a->cdf->dimensions[v->ids[i]].name;
    const struct array_entry entry = {.name = v->name,
                                      .type = why.status == ALLFOLD_OK ? cdf_type(v->file_type) : ALLFOLD_TYPE_NONE,
                                      .type_text = why.status == ALLFOLD_OK ? NULL : cdf_type_name(v->file_type),
                                      .refused = why.status == ALLFOLD_OK ? NULL : reason(&why),
                                      .dimensions = info.dimensions,
                                      .shape = v->dimensions <= ARRAY_DIMENSIONS_MAX ? info.shape : NULL,
                                      .dimension_names = names,
                                      .missing = missing[0] != '\0' ? missing : NULL,
                                      .packing = packing[0] != '\0' ? packing : NULL,
                                      .big_endian = info.layout.swapped != 0};
    visit(user, &entry);
}

static allfold_status list_cdf(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    struct cdf cdf;
    if (cdf_read(file, &cdf, error) == ALLFOLD_OK)
        for (uint64_t i = 0; i < cdf.variable_count; i++)
            visit_variable(&(struct cdf_attributes){file, &cdf, &cdf.variables[i]}, visit, user);
    cdf_free(&cdf);
    return error->status;
}

static allfold_status describe_cdf(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                   struct error *error)
{
    struct cdf cdf;
    uint64_t i = 0;
    if (cdf_read(file, &cdf, error) == ALLFOLD_OK) {
        while (i < cdf.variable_count && strcmp(cdf.variables[i].name, file->member) != 0)
            i++;
        if (i == cdf.variable_count)
            input_refuse_member(file, &format_netcdf, error);
        else if (describe_variable(&(struct cdf_attributes){file, &cdf, &cdf.variables[i]}, info, error) == ALLFOLD_OK)
            plain_cut(hints, info, error);
    }
    cdf_free(&cdf);
    return error->status;
}

const struct format format_netcdf = {
    .name = "netcdf", .recognises = recognises_cdf, .list = list_cdf, .describe = describe_cdf};
