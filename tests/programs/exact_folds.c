/* Folds the arrays of a file at level exact and prints each result's bits: the program behind test_exact.py. Run under MPI:
   exact_folds BACKEND STAGING_BYTES CASES. A case in the file is fold, element type (32 bits each), count (64 bits) and the
   elements, of which each rank takes its part. Behind the folds stand softmax, in f32, and log-softmax, in f64, of which a
   checksum of all elements is printed. STAGING_BYTES 0: the elements are folded where they lie. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>

static void print(const struct fold_results *result)
{
    for (int i = 0; i < result->field_count; i++) {
        const allfold_value value = result->fields[i].value;
        if (value.kind != ALLFOLD_VALUE_F64)
            printf("%s%" PRId64, i > 0 ? " " : "", value.i64);
        else
            printf("%s%s%a", i > 0 ? " " : "", value.f64 != value.f64 ? "+" : "", value.f64 != value.f64 ? NAN : value.f64);
    }
    putchar('\n');
}

/* From host memory that is read in shards, or in place. */
static allfold_status fold(allfold_context *ctx, bool streamed, allfold_fold which, const allfold_array *part,
                           struct range range, struct fold_results *result)
{
    if (!streamed)
        return reduce_all(ctx, which, part, NULL, result);
    struct error error = {0};
    struct test_source source = source_of(part->data, range, part->type);
    const struct job job = {.type = part->type, .source = &source.filled.source, .range = range};
    return core_reduce(ctx, &(struct fold_call){.fold = which}, &job, result, &error);
}

/* A sum over elements, whichever rank has them, of a hash of place and bits. */
static uint64_t checksum(const unsigned char *y, size_t bytes, struct range range)
{
    uint64_t sum = 0, all;
    for (uint64_t i = 0; i < range.count; i++) {
        uint64_t hash = (range.first + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        double wide;
        float narrow;
        memcpy(bytes == 8 ? (void *)&wide : (void *)&narrow, y + i * bytes, bytes);
        const bool nan = bytes == 8 ? wide != wide : narrow != narrow; /* any NaN is as good */
        for (size_t j = 0; j < bytes; j++)
            hash = (hash ^ (nan ? 0xff : y[i * bytes + j])) * UINT64_C(0x100000001b3);
        sum += hash ^ hash >> 32;
    }
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

static allfold_status softmax(allfold_context *ctx, bool streamed, bool logarithm, const allfold_array *part, struct range range)
{
    const allfold_type type = logarithm ? ALLFOLD_F64 : ALLFOLD_F32;
    const size_t bytes = allfold_type_bytes(type);
    const allfold_call options = {.size = sizeof options, .logarithm = logarithm};
    void *const y = host_block(range.count * bytes, bytes);
    struct error error = {0};
    struct test_source source = source_of(part->data, range, part->type);
    struct test_sink sink = sink_of(y, range, type);
    const struct job job = {.type = part->type, .source = &source.filled.source, .range = range};
    const allfold_status status = streamed ? core_softmax(ctx, logarithm, &job, &sink.sink, &error)
                                           : allfold_softmax(ctx, part, y, type, &options);
    const uint64_t sum = checksum(y, bytes, range);
    if (world_rank() == 0 && status == ALLFOLD_OK)
        printf("%016" PRIx64 "\n", sum);
    host_block_free(y, bytes);
    return status;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 4, "expected BACKEND STAGING_BYTES CASES");
    const uint64_t staging = strtoull(argv[2], NULL, 10);
    FILE *const file = fopen(argv[3], "rb");
    const allfold_options options = {.threads = 2, .staging_bytes = staging, .level = ALLFOLD_LEVEL_EXACT};
    allfold_context *const ctx = open_or_skip(argv[1], options);
    struct {
        uint32_t fold, type;
        uint64_t count;
    } head;
    must(file != NULL && ctx != NULL, "no file, or no such backend");
    while (fread(&head, sizeof head, 1, file) == 1) {
        const size_t bytes = allfold_type_bytes((allfold_type)head.type);
        char *const all = host_block(head.count * bytes, bytes);
        must(fread(all, bytes, head.count, file) == head.count, "a short file");
        const struct range range = range_part(head.count, (uint64_t)world_rank(), (uint64_t)world_size());
        const allfold_array part = {all + range.first * bytes, range.count, (allfold_type)head.type};
        struct fold_results result;
        const bool is_fold = head.fold < ALLFOLD_FOLD_COUNT;
        const allfold_status status = is_fold ? fold(ctx, staging != 0, (allfold_fold)head.fold, &part, range, &result)
                                              : softmax(ctx, staging != 0, head.fold > ALLFOLD_FOLD_COUNT, &part, range);
        if (world_rank() == 0 && status == ALLFOLD_OK && is_fold)
            print(&result);
        else if (world_rank() == 0 && status != ALLFOLD_OK)
            puts(allfold_status_text(status));
        host_block_free(all, bytes);
    }
    fclose(file);
    allfold_close(ctx);
    MPI_Finalize();
    return 0;
}
