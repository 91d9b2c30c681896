/* Folds named inputs and prints the results: the program behind test_formats.py, which starts MPI once for many of them. Run under MPI:
   format_folds BACKEND STAGING_BYTES CASES. A line of the file CASES is FOLD INPUT, or replaced-by FILE: FILE is then
   renamed to the next input's file between its description and its opening. What is printed for it are the values, in
   hexadecimal if they are floating point, each with @INDEX if it has one, or the message of the failure. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>

/* Rank 0 describes the input, as the program has it. */
static void share(const char *name, struct array_info *info, struct error *error)
{
    memset(info, 0, sizeof *info);
    if (world_rank() == 0)
        array_describe(name, NULL, info, error);
    MPI_Bcast(info, sizeof *info, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(error, sizeof *error, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (info->details_bytes > 0 && world_rank() != 0)
        info->details = malloc(info->details_bytes);
    MPI_Bcast(info->details, (int)info->details_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void print(const struct fold_results *result)
{
    for (int i = 0; i < result->field_count; i++) {
        const allfold_value value = result->fields[i].value;
        if (value.kind == ALLFOLD_VALUE_F64)
            printf("%s%a", i > 0 ? " " : "", value.f64);
        else
            printf("%s%" PRId64, i > 0 ? " " : "", value.i64);
        if (result->fields[i].index != ALLFOLD_NO_INDEX)
            printf("@%" PRIu64, result->fields[i].index);
    }
    putchar('\n');
}

static void replace(const char *path, const char *by)
{
    if (world_rank() == 0 && by[0] != '\0')
        must(rename(by, path) == 0, by);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fold(allfold_context *ctx, allfold_fold which, const char *name, char *by)
{
    struct array_info info;
    struct fold_results result;
    struct error error = {.status = ALLFOLD_OK};
    struct source *source = NULL;
    share(name, &info, &error);
    replace(info.path, by);
    by[0] = '\0';
    const struct packing *const packing = which == ALLFOLD_SUM || which == ALLFOLD_MEAN ? array_keep_packed(&info) : NULL;
    if (error.status == ALLFOLD_OK) {
        source_open(&info, &source, &error);
        const struct job job = {.type = info.type, .source = source,
                                .range = array_part(&info, (uint64_t)world_rank(), (uint64_t)world_size())};
        core_reduce(ctx, &(struct fold_call){.fold = which, .packing = packing}, &job, &result, &error);
        source_close(source);
    }
    if (world_rank() == 0 && error.status == ALLFOLD_OK)
        print(&result);
    else if (world_rank() == 0)
        puts(error.text);
    array_release(&info);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    must(argc == 4, "expected BACKEND STAGING_BYTES CASES");
    char word[16], name[ARRAY_PATH_BYTES], by[ARRAY_PATH_BYTES] = "";
    FILE *const file = fopen(argv[3], "r");
    const allfold_options options = {.threads = 2, .staging_bytes = strtoull(argv[2], NULL, 10), .level = ALLFOLD_LEVEL_EXACT};
    allfold_context *const ctx = open_or_skip(argv[1], options);
    must(file != NULL && ctx != NULL, "no file, or no such backend");
    while (fscanf(file, "%15s %4095[^\n]", word, name) == 2) {
        allfold_fold which = ALLFOLD_SUM;
        if (strcmp(word, "replaced-by") == 0) {
            snprintf(by, sizeof by, "%s", name);
            continue;
        }
        must(fold_by_name(word, &which), word);
        fold(ctx, which, name, by);
    }
    fclose(file);
    allfold_close(ctx);
    MPI_Finalize();
    return 0;
}
