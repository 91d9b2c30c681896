/* All attributes of an object of HDF5: see hdf5_dataset.h. */
#include "array/formats/hdf5_dataset.h"

#include <stdlib.h>

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

struct visiting {
    attribute_visit *visit;
    void *user;
};

static void visit_numbers(const struct visiting *v, hid_t id, hid_t file_type, struct array_attribute *attribute)
{
    bool swapped;
    _Alignas(8) unsigned char values[BYTES_MAX];
    attribute->type = hdf5_element_type(file_type, &swapped);
    if (attribute->type == ALLFOLD_TYPE_NONE || attribute->count > sizeof values / allfold_type_bytes(attribute->type))
        return;
    const hid_t type = H5Tcopy(file_type);
    if (swapped)
        H5Tset_order(type, H5Tget_order(H5T_NATIVE_INT));
    attribute->values = values;
    if (H5Aread(id, type, values) >= 0)
        v->visit(v->user, attribute);
    H5Tclose(type);
}

static void visit_text(const struct visiting *v, hid_t id, hid_t type, struct array_attribute *attribute)
{
    const bool varies = H5Tis_variable_str(type) > 0;
    char *text = NULL, fixed[BYTES_MAX];
    if (attribute->count != 1 || (!varies && H5Tget_size(type) > sizeof fixed) || H5Aread(id, type, varies ? (void *)&text : fixed) < 0)
        return;
    attribute->type = ALLFOLD_TYPE_NONE;
    attribute->values = varies ? text : fixed;
    attribute->count = varies ? (text != NULL ? strlen(text) : 0) : strnlen(fixed, H5Tget_size(type));
    if (attribute->count > 0 && attribute->count <= BYTES_MAX)
        v->visit(v->user, attribute);
    if (varies && text != NULL)
        H5free_memory(text);
}

static herr_t visit_one(hid_t object, const char *name, const H5A_info_t *info, void *user)
{
    const hid_t id = is_own(name) ? -1 : H5Aopen(object, name, H5P_DEFAULT);
    (void)info;
    if (id < 0)
        return 0;
    const hid_t type = H5Aget_type(id), space = H5Aget_space(id);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    struct array_attribute attribute = {.name = name, .count = count > 0 ? (uint64_t)count : 0};
    if (attribute.count > 0 && H5Tget_class(type) == H5T_STRING)
        visit_text(user, id, type, &attribute);
    else if (attribute.count > 0)
        visit_numbers(user, id, type, &attribute);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(id);
    return 0;
}

void hdf5_attributes_visit(hid_t object, attribute_visit *visit, void *user)
{
    struct visiting visiting = {visit, user};
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, visit_one, &visiting);
}
