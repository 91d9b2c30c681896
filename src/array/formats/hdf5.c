/* The formats hdf5 and netcdf4: one file format and one library; NetCDF-4 adds attributes, by which it is told. */
#include "array/formats/hdf5_dataset.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- which of the two */

static bool has_attribute(hid_t id, const char *object, const char *attribute)
{
    return H5Aexists_by_name(id, object, attribute, H5P_DEFAULT) > 0;
}

static bool is_scale(hid_t id, const char *object) { return has_attribute(id, object, "CLASS") && has_attribute(id, object, "NAME"); }

/* Stops at a dataset with or for a dimension scale, as NetCDF-4 has one for each dimension. */
static herr_t visit_until_scale(hid_t id, const char *name, const H5O_info_t *object, void *user)
{
    (void)user;
    return object->type == H5O_TYPE_DATASET
           && (has_attribute(id, name, "DIMENSION_LIST") || has_attribute(id, name, "_Netcdf4Dimid") || is_scale(id, name));
}

/* A file that the library cannot open is hdf5: read_directory says why. */
static bool recognises_netcdf(const struct input_file *file)
{
    struct error ignored = {0};
    if (!hdf5_recognises(file))
        return false;
    hdf5_lock();
    const hid_t id = hdf5_file_open(file->name, &ignored);
    const bool netcdf = id >= 0
                        && (H5Aexists(id, "_NCProperties") > 0 || H5Aexists(id, "_nc3_strict") > 0
                            || H5Ovisit(id, H5_INDEX_NAME, H5_ITER_INC, visit_until_scale, NULL) > 0);
    if (id >= 0)
        H5Fclose(id);
    hdf5_unlock();
    return netcdf;
}

/* ---- names of dimensions */

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
    if (d->dimensions == 1 && is_scale(d->dataset, "."))
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

/* ---- the directory */

/* Positions in the order of reading. False: they are too many. */
static bool set_positions(const struct hdf5_dataset *d, struct array_info *info)
{
    uint64_t bytes = 0;
    if (!array_count(d->shape, d->dimensions, sizeof(double), &info->count)) /* packed values are unpacked */
        return false;
    memcpy(info->chunk, d->block, sizeof info->chunk);
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

static void describe(struct hdf5_dataset *d, struct array_entry *entry)
{
    struct array_info *const info = &entry->info;
    info->type = d->type;
    info->dimensions = d->dimensions;
    memcpy(info->shape, d->shape, sizeof info->shape);
    info->layout.swapped = d->type != ALLFOLD_TYPE_NONE && d->swapped;
    entry->shapeless = d->dataset < 0;
    entry->type_text = d->type_text[0] != '\0' ? d->type_text : NULL;
    entry->chunk = d->chunked ? d->block : NULL;
    entry->filters = d->filters_text[0] != '\0' ? d->filters_text : NULL;
    entry->refused = d->refused;
    if (d->refused.status != ALLFOLD_OK)
        return;
    if (d->access == HDF5_CONTIGUOUS) {
        info->plain = 1;
        info->layout.offset = d->offset;
    } else if (!set_positions(d, info)) {
        error_set(&entry->refused, ALLFOLD_UNSUPPORTED, "expected a shape, in whole chunks, of " ARRAY_COUNT_RULE " of f64, found a larger one");
        return;
    }
    encoding_describe(hdf5_attribute_find, d, &info->type, &info->encoding, &entry->refused);
}

struct visitor {
    const struct input_file *file;
    struct directory *directory;
    bool netcdf;
};

/* HDF5's name of a dataset begins with a slash, NetCDF's does not. */
static void spell(const char *name, bool netcdf, char spelled[ARRAY_PATH_BYTES])
{
    while (*name == '/')
        name++;
    snprintf(spelled, ARRAY_PATH_BYTES, "%s%s", netcdf ? "" : "/", name);
}

static void add_dataset(const struct visitor *v, const char *name, struct hdf5_dataset *d)
{
    char spelled[ARRAY_PATH_BYTES], names[ARRAY_DIMENSIONS_MAX][NAME_BYTES];
    const char *dimension_names[ARRAY_DIMENSIONS_MAX];
    spell(name, v->netcdf, spelled);
    struct array_entry *const entry = d->is_dimension ? NULL : directory_entry(v->directory, v->file, spelled, name);
    if (entry == NULL)
        return;
    describe(d, entry);
    if (d->dataset >= 0 && find_dimension_names(d, names))
        entry->dimension_names = dimension_names;
    for (uint32_t i = 0; i < d->dimensions; i++)
        dimension_names[i] = names[i];
    directory_add(v->directory);
}

/* Datasets only. */
static void visit_name(const struct visitor *v, hid_t id, const char *name)
{
    struct hdf5_dataset dataset;
    if (!hdf5_dataset_open(id, name, &dataset))
        return;
    add_dataset(v, name, &dataset);
    hdf5_dataset_close(&dataset);
}

static herr_t visit_object(hid_t id, const char *name, const H5O_info_t *object, void *user)
{
    if (object->type == H5O_TYPE_DATASET)
        visit_name(user, id, name);
    return 0;
}

static allfold_status read_as(bool netcdf, const struct input_file *file, struct directory *directory, struct error *error)
{
    struct visitor visitor = {file, directory, netcdf};
    hdf5_lock();
    const hid_t id = hdf5_file_open(file->name, error);
    if (id >= 0 && directory->name != NULL && !directory->pattern)
        visit_name(&visitor, id, directory->name);
    else if (id >= 0 && H5Ovisit(id, H5_INDEX_NAME, H5_ITER_INC, visit_object, &visitor) < 0)
        hdf5_failed(error, ALLFOLD_BAD_INPUT, "cannot list what it holds");
    if (id >= 0)
        H5Fclose(id);
    hdf5_unlock();
    return error->status;
}

static allfold_status read_hdf5(const struct input_file *file, struct directory *directory, struct error *error)
{
    return read_as(false, file, directory, error);
}

static allfold_status read_netcdf(const struct input_file *file, struct directory *directory, struct error *error)
{
    return read_as(true, file, directory, error);
}

static allfold_status visit_attributes(const struct input_file *file, const char *array, attribute_visit *visit, void *user, struct error *error)
{
    struct hdf5_dataset dataset;
    hdf5_lock();
    const hid_t id = hdf5_file_open(file->name, error);
    if (id >= 0 && array == NULL)
        hdf5_attributes_visit(id, visit, user);
    else if (id >= 0 && hdf5_dataset_open(id, array, &dataset)) {
        if (dataset.dataset >= 0)
            hdf5_attributes_visit(dataset.dataset, visit, user);
        hdf5_dataset_close(&dataset);
    }
    if (id >= 0)
        H5Fclose(id);
    hdf5_unlock();
    return error->status;
}

const struct format format_netcdf4 = {.name = "netcdf4", .recognises = recognises_netcdf, .read_directory = read_netcdf, .open = hdf5_source_open,
                                      .visit_attributes = visit_attributes, .named = true};
const struct format format_hdf5 = {.name = "hdf5", .recognises = hdf5_recognises, .read_directory = read_hdf5, .open = hdf5_source_open,
                                   .visit_attributes = visit_attributes, .named = true};
