/* What is known of an HDF5 dataset: type, shape, layout, filters, fill value. See hdf5_dataset.h. */
#include "array/formats/hdf5_dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES (UINT64_C(4) << 20) /* what H5Dread reads at a time of a dataset without chunks */

/* A type that is refused, in HDF5's words. */
static const char *type_words(hid_t type, char words[64])
{
    static const char *const classes[] = {
        [H5T_INTEGER] = "integer", [H5T_FLOAT] = "floating-point", [H5T_TIME] = "time", [H5T_STRING] = "string",
        [H5T_BITFIELD] = "bitfield", [H5T_OPAQUE] = "opaque", [H5T_COMPOUND] = "compound", [H5T_REFERENCE] = "reference",
        [H5T_ENUM] = "enumeration", [H5T_VLEN] = "variable-length", [H5T_ARRAY] = "array"};
    const H5T_class_t class = H5Tget_class(type);
    if (class < 0 || class >= (int)(sizeof classes / sizeof *classes))
        return "unknown";
    if (class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_BITFIELD)
        return classes[class];
    snprintf(words, 64, "%s of %zu bits", classes[class], H5Tget_precision(type));
    return words;
}

static void find_type(struct hdf5_dataset *d)
{
    const hid_t type = H5Dget_type(d->dataset);
    d->type = hdf5_element_type(type, &d->swapped);
    if (d->type == ALLFOLD_TYPE_NONE) {
        char words[64];
        snprintf(d->type_text, sizeof d->type_text, "%s", type_words(type, words));
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "expected elements of one of allfold's types, found type %s", d->type_text);
    }
    H5Tclose(type);
}

static void find_shape(struct hdf5_dataset *d)
{
    hsize_t shape[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(d->dataset);
    const H5S_class_t class = H5Sget_simple_extent_type(space);
    const int dimensions = class == H5S_NULL ? 1 : H5Sget_simple_extent_dims(space, shape, NULL);
    if (class == H5S_NULL)
        shape[0] = 0;
    d->dimensions = dimensions < 0 ? 0 : (uint32_t)dimensions;
    for (uint32_t i = 0; i < d->dimensions; i++)
        d->shape[i] = shape[i];
    if (dimensions < 0)
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "its shape cannot be read");
    H5Sclose(space);
}

/* The filters by name, and whether this program undoes all of them itself: at most one that compresses, and no
   shuffle behind it, as the size of what it compressed to is known only when it is undone. */
static void find_filters(struct hdf5_dataset *d, hid_t properties)
{
    const int count = H5Pget_nfilters(properties);
    int compressors = 0;
    size_t at = 0;
    d->filters.element_bytes = d->type != ALLFOLD_TYPE_NONE ? allfold_type_bytes(d->type) : 1;
    for (int i = 0; i < count; i++) {
        unsigned flags, config, values[8];
        size_t value_count = sizeof values / sizeof *values;
        char name[32] = "";
        const int id = (int)H5Pget_filter2(properties, (unsigned)i, &flags, &value_count, values, sizeof name, name, &config);
        const char *const known = chunk_filter_name(id);
        char number[48];
        snprintf(number, sizeof number, "%.24s (%d)", name[0] != '\0' ? name : "filter", id);
        at += (size_t)snprintf(d->filters_text + at, sizeof d->filters_text - at, "%s%s", i > 0 ? ", " : "",
                               known != NULL ? known : number);
        if (at >= sizeof d->filters_text)
            at = sizeof d->filters_text - 1;
        compressors += id == CHUNK_DEFLATE || id == CHUNK_ZSTD;
        if (id == CHUNK_SHUFFLE && value_count >= 1 && values[0] > 0)
            d->filters.element_bytes = values[0];
        const bool own = chunk_filter_known(id) && compressors < 2 && !(id == CHUNK_SHUFFLE && compressors > 0)
                         && i < CHUNK_FILTERS_MAX;
        if (own)
            d->filters.id[d->filters.count++] = id;
        else if (d->library_filter[0] == '\0')
            snprintf(d->library_filter, sizeof d->library_filter, "%s%s", known != NULL ? known : number, chunk_filter_advice(id));
        if (!own && H5Zfilter_avail(id) <= 0)
            error_set(&d->refused, ALLFOLD_UNSUPPORTED, "its filter %s is not in this HDF5 library: expected a plugin for it in "
                     "HDF5_PLUGIN_PATH, or a copy without it (h5repack)%s", known != NULL ? known : number, chunk_filter_advice(id));
    }
}

static void find_chunks(struct hdf5_dataset *d, hid_t properties)
{
    hsize_t chunk[H5S_MAX_RANK];
    unsigned options;
    uint64_t bytes = d->type != ALLFOLD_TYPE_NONE ? allfold_type_bytes(d->type) : 1;
    if (H5Pget_chunk(properties, (int)d->dimensions, chunk) != (int)d->dimensions) {
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "the shape of its chunks cannot be read");
        return;
    }
    d->chunked = true;
    d->edges_unfiltered = H5Pget_chunk_opts(properties, &options) >= 0 && (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    for (uint32_t i = 0; i < d->dimensions; i++) {
        d->block[i] = chunk[i];
        if (chunk[i] == 0 || __builtin_mul_overflow(bytes, chunk[i], &bytes))
            bytes = UINT64_MAX;
    }
    find_filters(d, properties);
    d->access = d->library_filter[0] == '\0' ? HDF5_CHUNKED : HDF5_BY_LIBRARY;
    if (bytes > HDF5_CHUNK_BYTES_MAX)
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "expected chunks of at most %" PRIu64 " MiB, found %" PRIu64
                 " MiB: make a copy with smaller ones (h5repack -l)", HDF5_CHUNK_BYTES_MAX >> 20, bytes >> 20);
}

/* The whole array, cut along its first dimensions until a block is no longer than BLOCK_BYTES. */
static void find_block(struct hdf5_dataset *d)
{
    uint64_t room = d->type != ALLFOLD_TYPE_NONE ? BLOCK_BYTES / allfold_type_bytes(d->type) : 1;
    for (uint32_t i = d->dimensions; i-- > 0;) {
        d->block[i] = u64_max(1, u64_min(d->shape[i], room));
        room /= d->block[i];
    }
    d->access = HDF5_BY_LIBRARY;
}

static void find_layout(struct hdf5_dataset *d, hid_t properties)
{
    switch (H5Pget_layout(properties)) {
    case H5D_CHUNKED: find_chunks(d, properties); break;
    case H5D_COMPACT: find_block(d); break;
    case H5D_CONTIGUOUS: {
        const haddr_t offset = H5Dget_offset(d->dataset);
        find_block(d); /* elements that were never written have no place: they are the fill value */
        if (H5Pget_external_count(properties) > 0)
            error_set(&d->refused, ALLFOLD_UNSUPPORTED, "its elements lie in other files (external storage): expected them in this "
                     "one; h5repack makes such a copy");
        else if (offset != HADDR_UNDEF) {
            d->access = HDF5_CONTIGUOUS;
            d->offset = offset;
        }
        break;
    }
    case H5D_VIRTUAL:
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "it is a virtual dataset, of parts of others: fold those, or make a copy (h5repack)");
        break;
    default: error_set(&d->refused, ALLFOLD_UNSUPPORTED, "its layout is unknown"); break;
    }
}

static void find_fill(struct hdf5_dataset *d, hid_t properties)
{
    H5D_fill_value_t defined;
    if (d->type == ALLFOLD_TYPE_NONE || H5Pfill_value_defined(properties, &defined) < 0 || defined == H5D_FILL_VALUE_UNDEFINED)
        return; /* 0, as other readers give */
    const hid_t file_type = H5Dget_type(d->dataset), type = hdf5_memory_type(file_type, d->swapped);
    if (H5Pget_fill_value(properties, type, d->fill) < 0)
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "its fill value cannot be read");
    H5Tclose(type);
    H5Tclose(file_type);
}

/* An external link leads to another file, to which places and names of this one do not apply, and which may be a fifo: it is not followed. */
static herr_t refuse_link(const char *parent, const char *group, const char *file, const char *object, unsigned *flags, hid_t access,
                          void *found)
{
    (void)parent, (void)group, (void)file, (void)object, (void)flags, (void)access;
    *(bool *)found = true;
    return -1;
}

/* NetCDF marks dimensions without a variable by the text of this attribute. */
static bool find_is_dimension(struct hdf5_dataset *d)
{
    static const char mark[] = "This is a netCDF dimension but not a netCDF variable";
    struct attribute attribute;
    struct error ignored = {0};
    return hdf5_attribute_find(d, "NAME", &attribute, &ignored) && attribute.type == ALLFOLD_TYPE_NONE
           && attribute.count >= sizeof mark - 1 && memcmp(attribute.values, mark, sizeof mark - 1) == 0;
}

/* Opens the object of that name in the file; where that fails, d->refused says why. False: there is none. */
static bool open_object(hid_t file, const char *name, struct hdf5_dataset *d)
{
    bool elsewhere = false;
    const hid_t access = H5Pcreate(H5P_LINK_ACCESS);
    H5Pset_elink_cb(access, refuse_link, &elsewhere);
    d->dataset = H5Oopen(file, name[0] != '\0' ? name : "/", access);
    if (elsewhere)
        error_set(&d->refused, ALLFOLD_UNSUPPORTED, "it lies in another file, to which this one has a link: name that file");
    else if (d->dataset < 0)
        hdf5_failed(&d->refused, ALLFOLD_BAD_INPUT, "cannot open it");
    const bool exists = d->dataset >= 0 || elsewhere || H5Lexists(file, name, access) > 0;
    H5Pclose(access);
    return exists;
}

bool hdf5_dataset_open(hid_t file, const char *name, struct hdf5_dataset *d)
{
    memset(d, 0, sizeof *d);
    if (!open_object(file, name, d))
        return false;
    if (d->dataset < 0)
        return true;
    if (H5Iget_type(d->dataset) != H5I_DATASET) {
        hdf5_dataset_close(d);
        return false;
    }
    const hid_t properties = H5Dget_create_plist(d->dataset);
    if (properties < 0) {
        hdf5_failed(&d->refused, ALLFOLD_BAD_INPUT, "cannot read what it is");
        hdf5_dataset_close(d);
        return true;
    }
    find_type(d);
    find_shape(d);
    find_layout(d, properties);
    find_fill(d, properties);
    d->is_dimension = find_is_dimension(d);
    H5Pclose(properties);
    return true;
}

void hdf5_dataset_close(struct hdf5_dataset *d)
{
    if (d->dataset >= 0)
        H5Oclose(d->dataset);
    d->dataset = -1;
}
