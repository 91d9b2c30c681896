/* Dot products and comparisons of the arrays of a file, of which each result's bits are printed: the program behind test_dot.py and
   test_compare.py. Run under MPI: dot_folds BACKEND STAGING_BYTES CASES. A case in the file is level, element type, result type, 0 or, of a
   comparison, the other array's type (32 bits each), count (64 bits), atol, rtol and whether NaN is equal to NaN (64 bits each),
   and the elements of both arrays, of which each rank takes its part. On a device the two lie in host, device or pinned memory in
   turns; with STAGING_BYTES every other case streams from sources. */
#include "core/compare.h"
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>

struct head {
    uint32_t level, type, result_type, second;
    uint64_t count;
    double atol, rtol;
    uint64_t equal_nan;
};

/* A rank's part of an array in some memory. */
struct placed {
    enum memory memory;
    const char *host;
    void *device;
    struct queue *queue;
    allfold_array part;
};

static struct placed place(allfold_context *ctx, enum memory memory, const void *host, const allfold_array *part)
{
    const size_t element = allfold_type_bytes(part->type), bytes = part->count * element;
    struct placed placed = {.memory = memory, .part = *part};
    placed.part.data = host;
    if (memory == MEMORY_DEVICE) {
        placed.part.data = placed.device = device_block(ctx, bytes, element);
        device_write(ctx, placed.device, host, bytes);
    } else if (memory == MEMORY_PINNED) {
        placed.queue = pinned_block(ctx, bytes, element);
        placed.part.data = memcpy(pinned_memory(placed.queue, element), host, bytes);
    }
    return placed;
}

static void displace(allfold_context *ctx, struct placed *placed)
{
    if (placed->memory == MEMORY_DEVICE)
        device_block_free(ctx, placed->device, allfold_type_bytes(placed->part.type));
    else if (placed->memory == MEMORY_PINNED)
        ctx->device->backend->queue_close(placed->queue);
}

static allfold_status dot_of_sources(allfold_context *ctx, const struct head *head, const char *const all[2], struct range range,
                                     allfold_result *result)
{
    const allfold_type type = (allfold_type)head->type;
    const size_t offset = range.first * allfold_type_bytes(type);
    struct test_source x = source_of(all[0] + offset, range, type), y = source_of(all[1] + offset, range, type);
    const struct job job = {.type = type, .source = &x.filled.source, .second = &y.filled.source, .range = range};
    struct fold_results found;
    struct error error = {0};
    const struct fold_call call = {.fold = (allfold_fold)FOLD_DOT, .result_type = (allfold_type)head->result_type};
    if (core_reduce(ctx, &call, &job, &found, &error) == ALLFOLD_OK)
        *result = (allfold_result){.value = found.fields[0].value, .count = found.count, .level = found.level};
    return error.status;
}

static allfold_status compare_sources(allfold_context *ctx, const struct head *head, const char *const all[2], struct range range,
                                      allfold_comparison *found)
{
    const allfold_type a = (allfold_type)head->type, b = (allfold_type)head->second;
    struct test_source x = source_of(all[0] + range.first * allfold_type_bytes(a), range, a);
    struct test_source y = source_of(all[1] + range.first * allfold_type_bytes(b), range, b);
    const struct compare_input input = {.a = &x.filled.source, .b = &y.filled.source, .a_type = a, .b_type = b, .count = head->count, .range = range,
                                        .has_part = true, .atol = head->atol, .rtol = head->rtol, .equal_nan = head->equal_nan != 0};
    struct error error = {0};
    return core_compare(ctx, &input, found, &error);
}

/* Where the arrays lie, in turns. */
static const enum memory *ways_of(allfold_context *ctx, int number)
{
    static const enum memory ways[][2] = {{MEMORY_HOST, MEMORY_HOST}, {MEMORY_DEVICE, MEMORY_DEVICE}, {MEMORY_DEVICE, MEMORY_HOST},
                                          {MEMORY_PINNED, MEMORY_DEVICE}, {MEMORY_HOST, MEMORY_PINNED}};
    return ways[ctx->device->backend->own_memory ? (number + world_rank()) % (int)(sizeof ways / sizeof *ways) : 0];
}

static allfold_status compare(allfold_context *ctx, const struct head *head, const char *const all[2], int number, allfold_comparison *found)
{
    const struct range range = range_part(head->count, (uint64_t)world_rank(), (uint64_t)world_size());
    const allfold_array a = {.count = range.count, .type = (allfold_type)head->type}, b = {.count = range.count, .type = (allfold_type)head->second};
    const allfold_tolerance tolerance = {.size = sizeof tolerance, .atol = head->atol, .rtol = head->rtol, .equal_nan = head->equal_nan != 0};
    const enum memory *const way = ways_of(ctx, number);
    struct placed x = place(ctx, way[0], all[0] + range.first * allfold_type_bytes(a.type), &a);
    struct placed y = place(ctx, way[1], all[1] + range.first * allfold_type_bytes(b.type), &b);
    const allfold_status status = allfold_compare(ctx, &x.part, &y.part, &tolerance, found);
    displace(ctx, &x);
    displace(ctx, &y);
    return status;
}

static allfold_status dot(allfold_context *ctx, const struct head *head, const char *const all[2], int number, allfold_result *result)
{
    const struct range range = range_part(head->count, (uint64_t)world_rank(), (uint64_t)world_size());
    const allfold_array part = {.count = range.count, .type = (allfold_type)head->type};
    const size_t offset = range.first * allfold_type_bytes(part.type);
    const allfold_call call = {.size = sizeof call, .result_type = (allfold_type)head->result_type};
    const enum memory *const way = ways_of(ctx, number);
    struct placed x = place(ctx, way[0], all[0] + offset, &part), y = place(ctx, way[1], all[1] + offset, &part);
    const allfold_status status = allfold_dot(ctx, &x.part, &y.part, &call, result);
    displace(ctx, &x);
    displace(ctx, &y);
    return status;
}

static void print(allfold_value value)
{
    if (value.kind == ALLFOLD_VALUE_I64)
        printf("%" PRId64, value.i64);
    else if (value.kind == ALLFOLD_VALUE_U64)
        printf("%" PRIu64, value.u64);
    else
        printf("%s%a", value.f64 != value.f64 ? "+" : "", value.f64 != value.f64 ? NAN : value.f64);
}

static void print_largest(const allfold_largest *largest)
{
    putchar(' ');
    print(largest->value);
    printf(" %" PRId64 " ", (int64_t)largest->index);
    print(largest->a);
    putchar(' ');
    print(largest->b);
}

static void print_comparison(const allfold_comparison *found)
{
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, found->count, found->different, found->outside, found->nan_a,
           found->nan_b, found->nan_both);
    print_largest(&found->max_abs);
    print_largest(&found->max_rel);
    print_largest(&found->max_ulp);
    putchar(' ');
    print((allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = found->mean_difference});
    putchar(' ');
    print((allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = found->rmse});
    must(found->within == (found->outside == 0), "within");
}

/* Runs a case, and prints its line on rank 0. */
static void run(allfold_context *ctx, const struct head *head, const char *const all[2], bool streams, int number)
{
    const struct range range = range_part(head->count, (uint64_t)world_rank(), (uint64_t)world_size());
    allfold_comparison found = ALLFOLD_COMPARISON_INIT;
    allfold_result result;
    const allfold_status status = head->second != 0 ? (streams ? compare_sources(ctx, head, all, range, &found) : compare(ctx, head, all, number, &found))
                                  : streams         ? dot_of_sources(ctx, head, all, range, &result)
                                                    : dot(ctx, head, all, number, &result);
    must(status != ALLFOLD_OK || head->second != 0 || (result.count == head->count && (uint32_t)result.level <= head->level), "count or level");
    if (world_rank() != 0)
        return;
    if (status != ALLFOLD_OK)
        fputs(allfold_status_text(status), stdout);
    else if (head->second != 0)
        print_comparison(&found);
    else
        print(result.value);
    putchar('\n');
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 4, "expected BACKEND STAGING_BYTES CASES");
    const uint64_t staging = strtoull(argv[2], NULL, 10);
    FILE *const file = fopen(argv[3], "rb");
    allfold_context *contexts[2];
    for (int level = 0; level < 2; level++)
        contexts[level] = open_or_skip(argv[1], (allfold_options){.threads = 2, .staging_bytes = staging, .level = (allfold_level)level});
    must(file != NULL && contexts[0] != NULL, "no file, or no such backend");
    struct head head;
    for (int number = 0; fread(&head, sizeof head, 1, file) == 1; number++) {
        const size_t x_bytes = allfold_type_bytes((allfold_type)head.type);
        const size_t y_bytes = head.second != 0 ? allfold_type_bytes((allfold_type)head.second) : x_bytes;
        char *const x = host_block(head.count * x_bytes, x_bytes), *const y = host_block(head.count * y_bytes, y_bytes);
        const char *const all[2] = {x, y};
        must(fread(x, x_bytes, head.count, file) == head.count && fread(y, y_bytes, head.count, file) == head.count, "a short file");
        run(contexts[head.level], &head, all, staging != 0 && number % 2 == 0, number);
        host_block_free(x, x_bytes);
        host_block_free(y, y_bytes);
    }
    fclose(file);
    for (int level = 0; level < 2; level++)
        allfold_close(contexts[level]);
    MPI_Finalize();
    return 0;
}
