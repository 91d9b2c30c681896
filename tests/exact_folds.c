/* Folds the arrays of a file at level exact and prints each result's bits: the program behind test_exact.py. Run under MPI:
   exact_folds BACKEND STAGING_BYTES CASES. A case in the file is fold, element type (32 bits each), count (64 bits) and the
   elements, of which each rank takes its part. STAGING_BYTES 0: the elements are folded where they lie. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>

static void print(const allfold_result *result)
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
                           struct range range, allfold_result *result)
{
    if (!streamed)
        return allfold_reduce(ctx, which, part, NULL, result);
    struct error error = {0};
    struct test_source source = source_of(part->data, range, part->type);
    const struct job job = {.source = &source.source, .range = range};
    return core_reduce(ctx, which, ALLFOLD_NAN_PROPAGATE, part->type, &job, result, &error);
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
        allfold_result result;
        const allfold_status status = fold(ctx, staging != 0, (allfold_fold)head.fold, &part, range, &result);
        if (world_rank() == 0 && status == ALLFOLD_OK)
            print(&result);
        else if (world_rank() == 0)
            puts(allfold_status_text(status));
        host_block_free(all, bytes);
    }
    fclose(file);
    allfold_close(ctx);
    MPI_Finalize();
    return 0;
}
