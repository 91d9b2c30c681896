/* The elements of an HDF5 dataset, chunk after chunk in row-major order of the chunks, row-major inside each. A chunk has as many
   positions as a whole one has elements. At the edge of the array it has fewer elements, and its last positions are empty. Each
   thread decodes its own chunks. The lock covers only what the library does: finding and reading the raw bytes. See hdf5_dataset.h. */
#include "array/formats/hdf5_dataset.h"

#include "array/data_file.h"
#include "array/formats/swap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hdf5_source {
    struct source source;
    struct array_info info;
    struct data_file data_file; /* to see whether it changes */
    hid_t file;
    struct hdf5_dataset dataset;
    size_t element_bytes;
    uint64_t block_elements;
    struct chunking chunking;
    struct chunk_grid grid;
    char note[240];
};

struct hdf5_reader {
    struct reader reader;
    struct chunk_decoder decoder;
    void *raw;  /* a chunk as it lies in the file */
    void *whole; /* a decoded chunk of the edge */
    size_t raw_bytes;
};

/* What is needed of a chunk. */
struct needed {
    struct chunk_box box;                 /* its elements, as they lie in the array */
    hsize_t chunk[ARRAY_DIMENSIONS_MAX];  /* where the chunk begins in the dataset */
    uint64_t within[ARRAY_DIMENSIONS_MAX]; /* the place in the chunk of the first element that is needed */
    bool cut, edge;                       /* not all of its elements are needed; it ends beyond the dataset */
};

static struct needed needed_of(const struct hdf5_source *s, uint64_t number)
{
    const struct hdf5_dataset *const d = &s->dataset;
    struct needed needed = {.box = chunking_box(&s->chunking, number)};
    for (uint32_t i = 0; i < d->dimensions; i++) {
        const uint64_t start = needed.box.start[i] + s->info.first[i];
        needed.within[i] = start % d->block[i];
        needed.chunk[i] = start - needed.within[i];
        needed.edge = needed.edge || d->block[i] > d->shape[i] - needed.chunk[i];
    }
    needed.cut = needed.box.elements < s->block_elements;
    return needed;
}

/* Fails as *why says of one chunk. */
static allfold_status at_chunk(const struct hdf5_source *s, const struct needed *needed, const struct error *why, struct error *error)
{
    char place[128] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < s->dataset.dimensions && length < sizeof place; i++)
        length += (size_t)snprintf(place + length, sizeof place - length, "%s%" PRIu64, i > 0 ? ", " : "", (uint64_t)needed->chunk[i]);
    return error_within(error, why, "%s:%s: chunk at (%s)", file_shown(s->info.path), file_shown(s->info.member), place);
}

static void fill_elements(const struct hdf5_source *s, void *destination, uint64_t count)
{
    static const unsigned char zero[8];
    if (memcmp(s->dataset.fill, zero, s->element_bytes) == 0) {
        memset(destination, 0, (size_t)(count * s->element_bytes));
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy((char *)destination + i * s->element_bytes, s->dataset.fill, s->element_bytes);
}

static allfold_status reserve_raw(struct hdf5_reader *r, hsize_t bytes, struct error *error)
{
    const struct hdf5_source *const s = (const struct hdf5_source *)r->reader.source;
    const size_t whole = (size_t)s->block_elements * s->element_bytes;
    if (bytes > whole + whole / 8 + 65536 || bytes > s->info.file_bytes) /* what does not become smaller is stored as it is */
        return error_set(error, ALLFOLD_BAD_INPUT, "expected at most %zu bytes and some, found %" PRIu64 " in the file's table: the file "
                         "is damaged", whole, (uint64_t)bytes);
    if (bytes <= r->raw_bytes)
        return ALLFOLD_OK;
    free(r->raw);
    r->raw_bytes = 0;
    r->raw = malloc((size_t)bytes);
    if (r->raw == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for its %" PRIu64 " bytes", (uint64_t)bytes);
    r->raw_bytes = (size_t)bytes;
    return ALLFOLD_OK;
}

/* Before version 1.14 a chunk that was never written is an error, to be told from others by the innermost reason. */
static herr_t is_not_allocated(unsigned n, const H5E_error2_t *reason, void *found)
{
    if (n == 0)
        *(bool *)found = reason->desc != NULL && strcmp(reason->desc, "chunk storage is not allocated") == 0;
    return 0;
}

static allfold_status find_chunk(const struct hdf5_source *s, const hsize_t *start, hsize_t *bytes, struct error *error)
{
    bool absent = false;
    *bytes = 0;
    if (H5Dget_chunk_storage_size(s->dataset.dataset, start, bytes) >= 0)
        return ALLFOLD_OK;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, is_not_allocated, &absent);
    return absent ? ALLFOLD_OK : hdf5_failed(error, ALLFOLD_BAD_INPUT, "cannot find it");
}

/* Under the lock: the chunk's raw bytes. count is 0 if it was never written. */
static allfold_status read_raw(struct hdf5_reader *r, const hsize_t *start, struct raw_chunk *chunk, struct error *error)
{
    const struct hdf5_source *const s = (const struct hdf5_source *)r->reader.source;
    hsize_t bytes;
    if (find_chunk(s, start, &bytes, error) != ALLFOLD_OK || bytes == 0 || reserve_raw(r, bytes, error) != ALLFOLD_OK)
        return error->status;
    if (H5Dread_chunk(s->dataset.dataset, H5P_DEFAULT, start, &chunk->mask, r->raw) < 0)
        return hdf5_failed(error, ALLFOLD_IO_ERROR, "cannot read it");
    chunk->bytes = r->raw;
    chunk->count = (size_t)bytes;
    return ALLFOLD_OK;
}

/* Copies the elements that are needed out of a whole chunk, row by row. */
static void copy_needed(const struct hdf5_source *s, const struct needed *needed, const char *whole, char *destination)
{
    const struct hdf5_dataset *const d = &s->dataset;
    const struct chunk_box *const box = &needed->box;
    const uint64_t row = box->extent[d->dimensions - 1], rows = box->elements / row;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t rest = i, from = needed->within[d->dimensions - 1], stride = d->block[d->dimensions - 1];
        for (uint32_t j = d->dimensions - 1; j-- > 0;) {
            from += (needed->within[j] + rest % box->extent[j]) * stride;
            rest /= box->extent[j];
            stride *= d->block[j];
        }
        memcpy(destination + i * row * s->element_bytes, whole + from * s->element_bytes, (size_t)(row * s->element_bytes));
    }
}

/* The elements of a chunk, dense. Decoding is done outside of the lock. */
static allfold_status read_chunk(struct hdf5_reader *r, const struct needed *needed, char *destination, struct error *error)
{
    const struct hdf5_source *const s = (const struct hdf5_source *)r->reader.source;
    struct raw_chunk chunk = {.decoded = (size_t)s->block_elements * s->element_bytes};
    hdf5_lock();
    read_raw(r, needed->chunk, &chunk, error);
    hdf5_unlock();
    if (error->status != ALLFOLD_OK)
        return error->status;
    if (chunk.count == 0) {
        fill_elements(s, destination, needed->box.elements);
        return ALLFOLD_OK;
    }
    if (needed->edge && s->dataset.edges_unfiltered)
        chunk.mask = UINT32_MAX; /* the file's mask does not say so */
    if (needed->cut && r->whole == NULL && (r->whole = malloc(chunk.decoded)) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for its %zu bytes", chunk.decoded);
    if (chunk_decode(&r->decoder, &s->dataset.filters, &chunk, needed->cut ? r->whole : destination, error) != ALLFOLD_OK)
        return error->status;
    if (needed->cut)
        copy_needed(s, needed, r->whole, destination);
    if (s->dataset.swapped)
        swap_bytes(destination, destination, needed->box.elements, s->element_bytes);
    return ALLFOLD_OK;
}

/* Under the lock: the library reads and decodes the elements. */
static allfold_status read_by_library(const struct hdf5_source *s, const struct needed *needed, void *destination, struct error *error)
{
    const struct hdf5_dataset *const d = &s->dataset;
    hsize_t start[ARRAY_DIMENSIONS_MAX], extent[ARRAY_DIMENSIONS_MAX];
    for (uint32_t i = 0; i < d->dimensions; i++) {
        start[i] = needed->chunk[i] + needed->within[i];
        extent[i] = needed->box.extent[i];
    }
    const hid_t file_type = H5Dget_type(d->dataset), type = hdf5_memory_type(file_type, d->swapped), space = H5Dget_space(d->dataset);
    const hid_t memory = d->dimensions > 0 ? H5Screate_simple((int)d->dimensions, extent, NULL) : H5Screate(H5S_SCALAR);
    if ((d->dimensions > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0)
        || H5Dread(d->dataset, type, memory, space, H5P_DEFAULT, destination) < 0)
        hdf5_failed(error, ALLFOLD_IO_ERROR, "cannot read it");
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
    H5Tclose(file_type);
    return error->status;
}

static allfold_status read_hdf5(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct hdf5_reader *const r = (struct hdf5_reader *)reader;
    const struct hdf5_source *const s = (const struct hdf5_source *)reader->source;
    const uint64_t end = request->range.first + request->range.count;
    if (request->range.first % s->block_elements != 0 || request->range.count % s->block_elements != 0)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected whole chunks of %" PRIu64 " elements to be read, found %" PRIu64
                         " from %" PRIu64, file_shown(s->info.path), s->block_elements, request->range.count, request->range.first);
    piece->elements = request->buffer;
    piece->count = 0;
    piece->kept = NULL;
    for (uint64_t position = request->range.first; position < end; position += s->block_elements) {
        const struct needed needed = needed_of(s, position / s->block_elements);
        char *const destination = (char *)request->buffer + piece->count * s->element_bytes;
        struct error why = {0};
        if (s->dataset.access == HDF5_CHUNKED) {
            read_chunk(r, &needed, destination, &why);
        } else {
            hdf5_lock();
            read_by_library(s, &needed, destination, &why);
            hdf5_unlock();
        }
        if (why.status != ALLFOLD_OK)
            return at_chunk(s, &needed, &why, error);
        piece->count += needed.box.elements;
    }
    return ALLFOLD_OK;
}

static void close_reader(struct reader *reader)
{
    struct hdf5_reader *const r = (struct hdf5_reader *)reader;
    chunk_decoder_close(&r->decoder);
    free(r->raw);
    free(r->whole);
}

static allfold_status check_hdf5(struct source *source, struct error *error)
{
    return data_file_check(&((struct hdf5_source *)source)->data_file, error);
}

static void close_hdf5(struct source *source)
{
    struct hdf5_source *const s = (struct hdf5_source *)source;
    hdf5_lock();
    hdf5_dataset_close(&s->dataset);
    if (s->file >= 0)
        H5Fclose(s->file);
    hdf5_unlock();
    data_file_close(&s->data_file);
}

/* The file may have been replaced since it was described: all that readers take from either must agree.
   The times are for array_check_times to compare. */
static bool is_described(struct hdf5_source *s)
{
    const struct array_info *const info = &s->info;
    struct hdf5_dataset *const d = &s->dataset;
    struct encoding encoding;
    struct error ignored = {0};
    allfold_type type = d->type;
    return d->dimensions == info->dimensions && memcmp(d->shape, array_whole(info), sizeof info->shape) == 0
           && memcmp(d->block, info->chunk, sizeof info->chunk) == 0 && d->swapped == (info->layout.swapped != 0)
           && d->access != HDF5_CONTIGUOUS && encoding_describe(hdf5_attribute_find, d, &type, &encoding, &ignored) == ALLFOLD_OK
           && memcmp(&encoding, &info->encoding, sizeof encoding) == 0;
}

/* Opens the dataset in this process and checks that it is the one that was described. */
static allfold_status open_dataset(struct hdf5_source *s, struct error *error)
{
    const struct array_info *const info = &s->info;
    struct error why = {0};
    s->file = hdf5_file_open(info->path, &why);
    if (s->file < 0)
        return error_within(error, &why, "%s", file_shown(info->path));
    if (hdf5_dataset_open(s->file, info->member, &s->dataset) && s->dataset.refused.status == ALLFOLD_OK && is_described(s))
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "%s:%s: not the one that was described: the file has changed, or this host sees another "
                     "file", file_shown(info->path), file_shown(info->member));
}

allfold_status hdf5_source_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct hdf5_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_hdf5, .reader_bytes = sizeof(struct hdf5_reader), .close_reader = close_reader, .check = check_hdf5, .close = close_hdf5, .type = info->type,
                                .granule = info->granule};
    memcpy(&s->info, info, sizeof *info);
    s->file = s->dataset.dataset = -1;
    s->element_bytes = allfold_type_bytes(info->type);
    s->block_elements = info->granule;
    if (data_file_open(s->info.path, info->file_bytes, &s->data_file, error) != ALLFOLD_OK) {
        free(s);
        return error->status;
    }
    hdf5_lock();
    open_dataset(s, error);
    hdf5_unlock();
    chunk_grid_make(&s->grid, info->dimensions, info->shape, info->first, info->chunk);
    s->chunking = (struct chunking){.dimensions = info->dimensions, .granule = info->granule, .grid_count = 1, .grids = &s->grid};
    memcpy(s->chunking.shape, info->shape, sizeof s->chunking.shape);
    snprintf(s->note, sizeof s->note, "filter %s is undone by the HDF5 library, one chunk at a time: expect the speed of one thread",
             s->dataset.library_filter);
    s->source.chunking = &s->chunking;
    s->source.note = s->dataset.library_filter[0] != '\0' ? s->note : NULL;
    if (error->status == ALLFOLD_OK)
        *source = &s->source;
    else
        source_close(&s->source);
    return error->status;
}
