/* What the MPI tests of the library share: contexts on a backend, a global array cut and placed in several ways, elements
   made from their global index, and results compared among ranks. */
#pragma once

#include "allfold.h"
#include "base/elements.h"
#include "core/core.h"
#include "tests/tap.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static inline int world_rank(void) { return tap_rank(); }
static inline int world_size(void)
{
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/* Ends all ranks: for what only a broken test or machine can make fail. */
static inline void must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "rank %d: %s\n", world_rank(), what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The backend of that name: argv[1] of a test. */
static inline allfold_backend backend_named(const char *name)
{
    int i = 0;
    while (i < backend_count && strcmp(name, backends[i]->name) != 0)
        i++;
    must(i < backend_count, name);
    return backends[i]->id;
}

/* Opens a context on the backend named name, which replaces the options' own. NULL where this machine or build has no
   such backend: the test is then skipped. */
static inline allfold_context *open_or_skip(const char *name, allfold_options options)
{
    allfold_context *ctx;
    char message[ALLFOLD_ERROR_BYTES];
    options.size = sizeof options;
    options.backend = backend_named(name);
    const allfold_status status = allfold_open(MPI_COMM_WORLD, &options, &ctx, message, sizeof message);
    if (status == ALLFOLD_UNSUPPORTED)
        tap_skip_all("%s", message);
    else
        must(status == ALLFOLD_OK, message);
    return ctx;
}

/* allfold_reduce_all, and of a fold with one result allfold_reduce; the results as the library has them inside. */
static inline allfold_status reduce_all(allfold_context *ctx, allfold_fold fold, const allfold_array *part,
                                        const allfold_call *call, struct fold_results *found)
{
    allfold_result results[FOLD_RESULTS_MAX];
    allfold_results all = {.results = results, .capacity = allfold_result_count(fold), .count = 99};
    const bool one = allfold_result_count(fold) == 1;
    memset(results, 0xa5, sizeof results);
    const allfold_status status
        = one ? allfold_reduce(ctx, fold, part, call, results) : allfold_reduce_all(ctx, fold, part, call, &all);
    if (status != ALLFOLD_OK) {
        for (size_t i = 0; i < sizeof results; i++)
            must(((unsigned char *)results)[i] == 0xa5 && all.count == 99, "results are written in spite of an error");
        return status;
    }
    *found = (struct fold_results){.count = results->count, .level = results->level, .field_count = one ? 1 : (int)all.count};
    for (int i = 0; i < found->field_count; i++) {
        found->fields[i].name = results[i].name;
        found->fields[i].value = results[i].value;
        found->fields[i].index = results[i].index;
    }
    return ALLFOLD_OK;
}

/* How a global array is cut into the ranks' parts. */
enum split { SPLIT_EVEN, SPLIT_LAST, SPLIT_NOT_FIRST, SPLIT_GROWING, SPLIT_COUNT };
static const char *const split_names[] = {"even parts", "all on the last rank", "nothing on rank 0", "growing parts"};

static inline struct range split_part(enum split split, uint64_t count, int rank, int size)
{
    const uint64_t r = (uint64_t)rank, n = (uint64_t)size, weight = n * (n + 1) / 2;
    if (split == SPLIT_LAST)
        return rank == size - 1 ? (struct range){0, count} : (struct range){0, 0};
    if (split == SPLIT_NOT_FIRST && size > 1)
        return rank == 0 ? (struct range){0, 0} : range_part(count, r - 1, n - 1);
    if (split == SPLIT_GROWING) {
        const uint64_t first = count * (r * (r + 1) / 2) / weight, end = count * ((r + 1) * (r + 2) / 2) / weight;
        return (struct range){first, end - first};
    }
    return range_part(count, r, n);
}

/* Where a rank's part lies: host memory, device memory, host memory that the device can read, or nowhere: a source that is
   read in shards. */
enum memory { MEMORY_HOST, MEMORY_DEVICE, MEMORY_PINNED, MEMORY_SOURCE, MEMORY_COUNT };
static const char *const memory_names[] = {"host memory", "device memory", "pinned memory", "a source"};

/* Elements are put one element behind the start of an aligned block: aligned to their size, and to no more. */
#define BLOCK_BYTES(bytes, element_bytes) ((bytes) + (element_bytes) + 64)

static inline void *host_block(size_t bytes, size_t element_bytes)
{
    char *const block = aligned_alloc(64, (BLOCK_BYTES(bytes, element_bytes) + 63) / 64 * 64);
    must(block != NULL, "no memory");
    return block + element_bytes;
}
static inline void host_block_free(void *memory, size_t element_bytes) { free((char *)memory - element_bytes); }

static inline void *device_block(allfold_context *ctx, size_t bytes, size_t element_bytes)
{
    struct error error = {0};
    void *block = NULL;
    must(ctx->device->backend->allocate(ctx->device, BLOCK_BYTES(bytes, element_bytes), &block, &error) == ALLFOLD_OK,
         error.text);
    return (char *)block + element_bytes;
}
static inline void device_block_free(allfold_context *ctx, void *memory, size_t element_bytes)
{
    ctx->device->backend->release(ctx->device, (char *)memory - element_bytes);
}

/* A queue whose staging buffer has room for a block, such as the others, at pinned_memory. */
static inline struct queue *pinned_block(allfold_context *ctx, size_t bytes, size_t element_bytes)
{
    struct error error = {0};
    struct queue *queue = NULL;
    must(ctx->device->backend->queues_open(ctx->device, (BLOCK_BYTES(bytes, element_bytes) + 4095) / 4096 * 4096, 1, &queue, &error) == ALLFOLD_OK,
         error.text);
    return queue;
}
static inline void *pinned_memory(const struct queue *queue, size_t element_bytes)
{
    return (char *)queue->staging + element_bytes;
}

static inline void device_write(allfold_context *ctx, void *to, const void *from, size_t bytes)
{
    struct error error = {0};
    must(core_queues(ctx, 1, 1 << 20, &error) == ALLFOLD_OK, error.text);
    struct queue *const queue = ctx->queues[0];
    for (size_t start = 0; start < bytes; start += queue->bytes) {
        const size_t piece = bytes - start < queue->bytes ? bytes - start : queue->bytes;
        memcpy(queue->staging, (const char *)from + start, piece);
        must(ctx->device->backend->copy(queue, queue->staging, (char *)to + start, piece, &error) == ALLFOLD_OK
                 && ctx->device->backend->wait(queue, &error) == ALLFOLD_OK,
             error.text);
    }
}

static inline void device_read(allfold_context *ctx, void *to, const void *from, size_t bytes)
{
    struct error error = {0};
    must(core_queues(ctx, 1, 1 << 20, &error) == ALLFOLD_OK, error.text);
    struct queue *const queue = ctx->queues[0];
    for (size_t start = 0; start < bytes; start += queue->bytes) {
        const size_t piece = bytes - start < queue->bytes ? bytes - start : queue->bytes;
        must(ctx->device->backend->copy(queue, (const char *)from + start, queue->staging, piece, &error) == ALLFOLD_OK
                 && ctx->device->backend->wait(queue, &error) == ALLFOLD_OK,
             error.text);
        memcpy((char *)to + start, queue->staging, piece);
    }
}

/* A source whose elements a function writes into the reader's buffer, called by several threads at a time. */
struct filled_source {
    struct source source;
    allfold_status (*fill)(struct filled_source *source, struct range range, void *elements, struct error *error);
};
static inline allfold_status filled_read(struct reader *reader, const struct read_request *request, struct piece *piece,
                                         struct error *error)
{
    struct filled_source *const source = (struct filled_source *)reader->source;
    *piece = (struct piece){.elements = request->buffer, .count = request->range.count};
    return source->fill(source, request->range, request->buffer, error);
}
#define FILLED(function, of_type) {{.read = filled_read, .type = (of_type), .granule = 1}, (function)}

/* A rank's part as a source and as a sink that lie nowhere a device could use. fail_at is the number of the call that
   fails, counted from 1; 0 for none. */
struct test_source {
    struct filled_source filled;
    const char *data;
    uint64_t first;
    atomic_int calls;
    int fail_at;
};
struct test_sink {
    struct sink sink;
    char *data;
    uint64_t first;
    atomic_int calls;
    int fail_at;
};

static inline allfold_status test_read(struct filled_source *filled, struct range range, void *elements, struct error *error)
{
    struct test_source *const s = (struct test_source *)filled;
    const size_t bytes = allfold_type_bytes(filled->source.type);
    if (atomic_fetch_add(&s->calls, 1) + 1 == s->fail_at)
        return error_set(error, ALLFOLD_IO_ERROR, "the source fails as planned");
    memcpy(elements, s->data + (range.first - s->first) * bytes, range.count * bytes);
    return ALLFOLD_OK;
}
static inline allfold_status test_write(struct sink *sink, uint64_t first, uint64_t count, const void *elements,
                                        struct error *error)
{
    struct test_sink *const s = (struct test_sink *)sink;
    const size_t bytes = allfold_type_bytes(sink->type);
    if (atomic_fetch_add(&s->calls, 1) + 1 == s->fail_at)
        return error_set(error, ALLFOLD_IO_ERROR, "the sink fails as planned");
    memcpy(s->data + (first - s->first) * bytes, elements, count * bytes);
    return ALLFOLD_OK;
}
static inline struct test_source source_of(const void *data, struct range part, allfold_type type)
{
    return (struct test_source){FILLED(test_read, type), data, part.first, 0, 0};
}
static inline struct test_sink sink_of(void *data, struct range part, allfold_type type)
{
    return (struct test_sink){{.write = test_write, .type = type}, data, part.first, 0, 0};
}

/* A well-mixed number that depends on index and seed alone, and one in [0, 1) (S. Vigna's splitmix64). */
static inline uint64_t hash_of(uint64_t index, uint64_t seed)
{
    uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static inline double unit_of(uint64_t index, uint64_t seed) { return (double)(hash_of(index, seed) >> 11) * 0x1p-53; }

/* Element i of an array as a number, exactly; and a number as the element nearest to it, or its low bits as one. */
static inline long double element_get(allfold_type type, const void *elements, uint64_t i)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value) \
    case ALLFOLD_##ID: return (long double)load_##name(((const element_##name *)elements)[i]);
        ALLFOLD_TYPES(CASE)
#undef CASE
    default: return NAN;
    }
}
static inline void element_put_bits(allfold_type type, void *elements, uint64_t i, uint64_t bits)
{
    switch (allfold_type_bytes(type)) {
    case 1: ((uint8_t *)elements)[i] = (uint8_t)bits; break;
    case 2: ((uint16_t *)elements)[i] = (uint16_t)bits; break;
    case 4: ((uint32_t *)elements)[i] = (uint32_t)bits; break;
    default: ((uint64_t *)elements)[i] = bits; break;
    }
}
static inline void element_put(allfold_type type, void *elements, uint64_t i, double x)
{
    switch (type) {
    case ALLFOLD_F16: element_put_bits(type, elements, i, round_f16(x).bits); break;
    case ALLFOLD_BF16: element_put_bits(type, elements, i, round_bf16(x).bits); break;
    case ALLFOLD_F32: element_put_bits(type, elements, i, f32_bits((float)x)); break;
    case ALLFOLD_F64: element_put_bits(type, elements, i, f64_bits(x)); break;
    default: element_put_bits(type, elements, i, (uint64_t)(int64_t)x); break;
    }
}

/* The widest numbers there are, for sums in oracles. */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide;
#else
typedef long double wide;
#endif

/* FNV-1a, to compare results as bytes: among ranks, and from run to run. */
static inline uint64_t bytes_hash(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}
#define HASH_START 0xcbf29ce484222325u

/* The first of n hashes that is not the same on all ranks, or -1. */
static inline int first_difference(const uint64_t *hashes, int n)
{
    uint64_t *const least = malloc(2 * ((size_t)n + 1) * sizeof *least), *const most = least + n;
    must(least != NULL, "no memory");
    MPI_Allreduce(hashes, least, n, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(hashes, most, n, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    int first = -1;
    for (int i = n; i-- > 0;)
        first = least[i] != most[i] ? i : first;
    free(least);
    return first;
}
