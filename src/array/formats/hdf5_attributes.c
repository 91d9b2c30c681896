/* Attributes of HDF5: one of a dataset, or all of an object: see hdf5_dataset.h. */
#include "array/formats/hdf5_dataset.h"

#include <inttypes.h>

enum { BYTES_MAX = 8192 };

/* How HDF5 and NetCDF-4 keep dimensions, and what NetCDF-4 says of the file. */
static bool is_own(const char *name)
{
    static const char *const own[] = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties",
                                      "_nc3_strict", "DIMENSION_LABELS"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

/* ---- one */

static bool read_numbers(hid_t id, hid_t file_type, void *values, struct array_attribute *attribute)
{
    bool swapped;
    attribute->type = hdf5_element_type(file_type, &swapped);
    if (attribute->type == ALLFOLD_TYPE_NONE || attribute->count > BYTES_MAX / allfold_type_bytes(attribute->type))
        return false;
    const hid_t type = hdf5_memory_type(file_type, swapped);
    const bool done = H5Aread(id, type, values) >= 0;
    H5Tclose(type);
    return done;
}

/* A text that varies in length may be longer than what is read of it. */
static bool read_text(hid_t id, hid_t type, char *values, struct array_attribute *attribute)
{
    const bool varies = H5Tis_variable_str(type) > 0;
    char *text = NULL;
    if (attribute->count != 1 || (!varies && H5Tget_size(type) > BYTES_MAX) || H5Aread(id, type, varies ? (void *)&text : values) < 0
        || (varies && text == NULL))
        return false;
    attribute->type = ALLFOLD_TYPE_NONE;
    attribute->count = varies ? strlen(text) : strnlen(values, H5Tget_size(type));
    if (varies) {
        memcpy(values, text, u64_min(attribute->count, BYTES_MAX));
        H5free_memory(text);
    }
    return true;
}

/* Reads numbers or a text into values, of BYTES_MAX bytes. False: it is something else, or numbers that are too many. */
static bool read_attribute(hid_t id, void *values, struct array_attribute *attribute)
{
    const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    attribute->count = count > 0 ? (uint64_t)count : 0;
    attribute->values = values;
    const bool done = count > 0 && (H5Tget_class(type) == H5T_STRING ? read_text(id, type, values, attribute) : read_numbers(id, type, values, attribute));
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(id);
    return done;
}

bool hdf5_attribute_find(void *user, const char *name, struct attribute *attribute, struct error *error)
{
    const struct hdf5_dataset *const d = user;
    const htri_t exists = H5Aexists(d->dataset, name);
    _Alignas(8) unsigned char values[BYTES_MAX];
    struct array_attribute found = {.count = 0};
    memset(attribute, 0, sizeof *attribute);
    if (exists == 0)
        return false;
    const hid_t id = exists > 0 ? H5Aopen(d->dataset, name, H5P_DEFAULT) : -1;
    const bool done = id >= 0 && read_attribute(id, values, &found), is_text = found.type == ALLFOLD_TYPE_NONE;
    const size_t each = is_text ? 1 : allfold_type_bytes(found.type);
    if (!done || (!is_text && found.count > ATTRIBUTE_BYTES_MAX / each)) {
        error_set(error, ALLFOLD_UNSUPPORTED, "attribute %s: expected numbers or a text of at most %d bytes, found %" PRIu64
                  " values of another kind", name, ATTRIBUTE_BYTES_MAX, found.count);
        return false;
    }
    attribute->type = found.type;
    attribute->count = u64_min(found.count, ATTRIBUTE_BYTES_MAX);
    memcpy(attribute->values, values, attribute->count * each);
    return true;
}

/* ---- all */

struct visiting {
    attribute_visit *visit;
    void *user;
};

static herr_t visit_one(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
    const hid_t id = is_own(name) ? -1 : H5Aopen(object, name, H5P_DEFAULT);
    const struct visiting *const visiting = user;
    _Alignas(8) unsigned char values[BYTES_MAX];
    struct array_attribute attribute = {.name = name};
    (void)info;
    if (id < 0)
        return 0;
    if (read_attribute(id, values, &attribute) && attribute.count > 0 && attribute.count <= BYTES_MAX)
        visiting->visit(visiting->user, &attribute);
    return 0;
}

void hdf5_attributes_visit(hid_t object, attribute_visit *visit, void *user)
{
    struct visiting visiting = {visit, user};
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_one, &visiting);
}
