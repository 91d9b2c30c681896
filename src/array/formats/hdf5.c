/* The formats hdf5 and netcdf4: one file format and one library; NetCDF-4 adds attributes, by which it is told. */
#include "array/formats/hdf5_dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- a visit to all datasets of an open file */

struct visitor {
    const struct input_file *file;
    hid_t id;
    bool netcdf;
    void (*take)(struct visitor *visitor, const char *name, struct hdf5_dataset *dataset, struct error *error);
    array_visit *visit;
    void *user;
    bool found; /* by find_scale */
    struct error *error;
};

static herr_t visit_object(hid_t id, const char *name, const H5O_info_t *object, void *user)
{
    struct visitor *const visitor = user;
    struct hdf5_dataset dataset;
    if (object->type != H5O_TYPE_DATASET)
        return 0;
    if (hdf5_dataset_open(id, visitor->file->name, name, &dataset, visitor->error)) {
        visitor->take(visitor, name, &dataset, visitor->error);
        hdf5_dataset_close(&dataset);
    }
    return visitor->found || visitor->error->status != ALLFOLD_OK;
}

static allfold_status visit_all(struct visitor *visitor)
{
    if (H5Ovisit(visitor->id, H5_INDEX_NAME, H5_ITER_INC, visit_object, visitor) < 0)
        hdf5_failed(visitor->error, ALLFOLD_BAD_INPUT, "%s: cannot list what it holds", file_shown(visitor->file->name));
    return visitor->error->status;
}

static bool is_scale(hid_t dataset) { return H5Aexists(dataset, "CLASS") > 0 && H5Aexists(dataset, "NAME") > 0; }

/* A dimension scale, as NetCDF-4 has one for each dimension. */
static void find_scale(struct visitor *visitor, const char *name, struct hdf5_dataset *dataset, struct error *error)
{
    (void)name, (void)error;
    visitor->found = H5Aexists(dataset->dataset, "DIMENSION_LIST") > 0 || H5Aexists(dataset->dataset, "_Netcdf4Dimid") > 0
                     || is_scale(dataset->dataset);
}

static bool is_netcdf(const struct input_file *file, hid_t id)
{
    struct error ignored = {0};
    struct visitor visitor = {.file = file, .id = id, .take = find_scale, .error = &ignored};
    if (H5Aexists(id, "_NCProperties") > 0 || H5Aexists(id, "_nc3_strict") > 0)
        return true;
    visit_all(&visitor);
    return visitor.found;
}

/* A file that the library cannot open is hdf5: describe says why. */
static bool recognises_netcdf(const struct input_file *file)
{
    struct error ignored = {0};
    if (!hdf5_recognises(file))
        return false;
    hdf5_lock();
    const hid_t id = hdf5_file_open(file->name, &ignored);
    const bool netcdf = id >= 0 && is_netcdf(file, id);
    if (id >= 0)
        H5Fclose(id);
    hdf5_unlock();
    return netcdf;
}

/* ---- one dataset */

/* The one spelling of a dataset's name: HDF5's begins with a slash, NetCDF's does not. */
static void spell(const char *name, bool netcdf, char spelled[ARRAY_PATH_BYTES])
{
    char plain[ARRAY_PATH_BYTES];
    while (*name == '/')
        name++;
    snprintf(plain, sizeof plain, "%s", name);
    snprintf(spelled, ARRAY_PATH_BYTES, "%s%.*s", netcdf ? "" : "/", ARRAY_PATH_BYTES - 2, plain);
}

/* Elements, and positions in the order of reading: refuses shapes that are too large. */
static bool count_elements(const struct hdf5_dataset *d, struct array_info *info)
{
    uint64_t bytes = 0;
    if (!array_count(d->shape, d->dimensions, sizeof(double), &info->count)) /* packed values are unpacked */
        return false;
    info->granule = 1;
    info->positions = info->count > 0;
    for (uint32_t i = 0; i < d->dimensions; i++) {
        const uint64_t blocks = d->shape[i] / d->block[i] + (d->shape[i] % d->block[i] != 0);
        uint64_t along;
        info->granule *= d->block[i];
        if (__builtin_mul_overflow(blocks, d->block[i], &along) || __builtin_mul_overflow(info->positions, along, &info->positions))
            return false;
    }
    return !__builtin_mul_overflow(info->positions, (uint64_t)8, &bytes);
}

static allfold_status refuse_dataset(const struct input_file *file, const struct hdf5_dataset *d, struct error *error)
{
    return error_set(error, ALLFOLD_UNSUPPORTED, "%s: dataset %s: %s", file_shown(file->name), file_shown(file->member), d->refused);
}

static allfold_status set_info(const struct input_file *file, struct hdf5_dataset *d, struct array_info *info, struct error *error)
{
    struct error why = {0};
    if (d->refused[0] != '\0')
        return refuse_dataset(file, d, error);
    info->type = d->type;
    info->dimensions = d->dimensions;
    info->layout.swapped = d->swapped;
    memcpy(info->shape, d->shape, sizeof info->shape);
    if (!count_elements(d, info))
        return error_set(error, ALLFOLD_UNSUPPORTED, "%s: dataset %s: expected a shape of " ARRAY_COUNT_RULE " of f64, found a larger one",
                         file_shown(file->name), file_shown(file->member));
    if (d->access == HDF5_CONTIGUOUS) {
        info->granule = 1;
        info->positions = 0;
        info->plain = 1;
        info->layout = (struct array_layout){.offset = d->offset, .swapped = d->swapped};
        const uint64_t bytes = info->count * allfold_type_bytes(d->type);
        if (d->offset > file->bytes || bytes > file->bytes - d->offset)
            return error_set(error, ALLFOLD_BAD_INPUT, "%s: dataset %s: expected %" PRIu64 " bytes from byte %" PRIu64 ", found a file of %"
                             PRIu64 " bytes: it is cut off", file_shown(file->name), file_shown(file->member), bytes, d->offset,
                             file->bytes);
    }
    if (encoding_describe(hdf5_attribute_find, d, &info->type, &info->encoding, &why) != ALLFOLD_OK)
        return error_set(error, why.status, "%s: dataset %s: %s", file_shown(file->name), file_shown(file->member), why.text);
    return ALLFOLD_OK;
}

/* False: there is no dataset of that name, or *error is set. */
static bool describe_open(const struct input_file *file, hid_t id, struct array_info *info, struct error *error)
{
    struct hdf5_dataset dataset;
    if (!hdf5_dataset_open(id, file->name, file->member, &dataset, error))
        return false;
    set_info(file, &dataset, info, error);
    hdf5_dataset_close(&dataset);
    return true;
}

/* The file says all that an option could say. */
static allfold_status check_hints(const struct input_file *file, const struct array_hints *hints, const struct array_info *info,
                                  struct error *error)
{
    if (hints->has_offset || hints->has_count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: HDF5 file: expected no --offset and no --count, which a single file of this "
                         "format does not take", file_shown(file->name));
    if (hints->type != ALLFOLD_TYPE_NONE && hints->type != info->type && error->status == ALLFOLD_OK)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: dataset %s: --dtype says %s, but the file holds %s", file_shown(file->name),
                         file_shown(file->member), allfold_type_name(hints->type), allfold_type_name(info->type));
    return error->status;
}

static allfold_status describe_as(const struct format *format, const struct input_file *file, const struct array_hints *hints,
                                  struct array_info *info, struct error *error)
{
    char name[ARRAY_PATH_BYTES];
    bool found = false;
    hdf5_lock();
    const hid_t id = hdf5_file_open(file->name, error);
    if (id >= 0) {
        found = describe_open(file, id, info, error);
        H5Fclose(id);
    }
    hdf5_unlock();
    if (error->status == ALLFOLD_OK && !found)
        return input_refuse_member(file, format, error); /* it lists the file, and takes the lock for that */
    if (check_hints(file, hints, info, error) == ALLFOLD_OK) {
        spell(file->member, format == &format_netcdf4, name);
        memcpy(info->member, name, sizeof name);
    }
    return error->status;
}

static allfold_status describe_hdf5(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                    struct error *error)
{
    return describe_as(&format_hdf5, file, hints, info, error);
}

static allfold_status describe_netcdf(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                                      struct error *error)
{
    return describe_as(&format_netcdf4, file, hints, info, error);
}

static allfold_status open_hdf5(const struct array_info *info, struct source **source, struct error *error)
{
    return hdf5_source_open(info, source, error);
}

/* ---- the list */

#define NAME_BYTES 128

/* The last part of an object's path. */
static void last_name(hid_t object, char name[NAME_BYTES])
{
    char path[1024] = "";
    H5Iget_name(object, path, sizeof path);
    const char *const slash = strrchr(path, '/');
    snprintf(name, NAME_BYTES, "%.*s", NAME_BYTES - 1, slash != NULL ? slash + 1 : path);
}

/* The name of the scale that the first reference of a dimension's list leads to. */
static void find_dimension_name(hid_t dataset, const hvl_t *scales, char name[NAME_BYTES])
{
    const hid_t scale = scales->len > 0 ? H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, scales->p) : -1;
    name[0] = '\0';
    if (scale < 0)
        return;
    last_name(scale, name);
    H5Oclose(scale);
}

/* Whether this is the type of a DIMENSION_LIST: lists of references to objects. */
static bool is_reference_list(hid_t type)
{
    const hid_t element = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : -1;
    const bool is_reference = element >= 0 && H5Tequal(element, H5T_STD_REF_OBJ) > 0;
    if (element >= 0)
        H5Tclose(element);
    return is_reference;
}

/* The dimensions' names, from the dimension scales of the dataset. False if it has none. */
static bool find_dimension_names(const struct hdf5_dataset *d, char names[][NAME_BYTES])
{
    hvl_t scales[ARRAY_DIMENSIONS_MAX];
    if (d->dimensions == 1 && is_scale(d->dataset))
        return last_name(d->dataset, names[0]), true;
    if (d->dimensions == 0 || H5Aexists(d->dataset, "DIMENSION_LIST") <= 0)
        return false;
    const hid_t id = H5Aopen(d->dataset, "DIMENSION_LIST", H5P_DEFAULT), type = H5Aget_type(id), space = H5Aget_space(id);
    const bool fits = H5Sget_simple_extent_npoints(space) == (hssize_t)d->dimensions && is_reference_list(type)
                      && H5Aread(id, type, scales) >= 0;
    for (uint32_t i = 0; i < d->dimensions && fits; i++)
        find_dimension_name(d->dataset, &scales[i], names[i]);
    if (fits)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, scales);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(id);
    return fits;
}

static void visit_entry(struct visitor *visitor, const char *name, struct hdf5_dataset *d, struct error *error)
{
    char spelled[ARRAY_PATH_BYTES], missing[ENCODING_TEXT_BYTES], packing[ENCODING_TEXT_BYTES], names[ARRAY_DIMENSIONS_MAX][NAME_BYTES];
    const char *dimension_names[ARRAY_DIMENSIONS_MAX];
    struct encoding encoding;
    struct error why = {0};
    allfold_type type = d->type;
    (void)error;
    if (d->is_dimension)
        return;
    spell(name, visitor->netcdf, spelled);
    memset(&encoding, 0, sizeof encoding);
    if (d->refused[0] == '\0' && encoding_describe(hdf5_attribute_find, d, &type, &encoding, &why) != ALLFOLD_OK)
        snprintf(d->refused, sizeof d->refused, "%.*s", (int)sizeof d->refused - 1, why.text);
    encoding_missing_text(&encoding, missing);
    encoding_packing_text(&encoding, packing);
    const bool named = find_dimension_names(d, names);
    for (uint32_t i = 0; i < d->dimensions && named; i++)
        dimension_names[i] = names[i];
    const struct array_entry entry = {.name = spelled,
                                      .type = d->type == ALLFOLD_TYPE_NONE || encoding.stored == ALLFOLD_TYPE_NONE ? d->type : encoding.stored,
                                      .type_text = d->type == ALLFOLD_TYPE_NONE ? d->type_text : NULL,
                                      .refused = d->refused[0] != '\0' ? d->refused : NULL,
                                      .dimensions = d->dimensions,
                                      .shape = d->shape,
                                      .dimension_names = named ? dimension_names : NULL,
                                      .chunk = d->chunked ? d->block : NULL,
                                      .filters = d->filters_text[0] != '\0' ? d->filters_text : NULL,
                                      .missing = missing[0] != '\0' ? missing : NULL,
                                      .packing = packing[0] != '\0' ? packing : NULL,
                                      .big_endian = d->type != ALLFOLD_TYPE_NONE && d->swapped};
    visitor->visit(visitor->user, &entry);
}

static allfold_status list_as(bool netcdf, const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    struct visitor visitor = {.file = file, .netcdf = netcdf, .take = visit_entry, .visit = visit, .user = user, .error = error};
    hdf5_lock();
    visitor.id = hdf5_file_open(file->name, error);
    if (visitor.id >= 0) {
        visit_all(&visitor);
        H5Fclose(visitor.id);
    }
    hdf5_unlock();
    return error->status;
}

static allfold_status list_hdf5(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    return list_as(false, file, visit, user, error);
}

static allfold_status list_netcdf(const struct input_file *file, array_visit *visit, void *user, struct error *error)
{
    return list_as(true, file, visit, user, error);
}

const struct format format_netcdf4 = {
    .name = "netcdf4", .recognises = recognises_netcdf, .list = list_netcdf, .describe = describe_netcdf, .open = open_hdf5};
const struct format format_hdf5 = {
    .name = "hdf5", .recognises = hdf5_recognises, .list = list_hdf5, .describe = describe_hdf5, .open = open_hdf5};
