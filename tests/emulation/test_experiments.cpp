/* The experiments of `allfold ladder` and its chapters on rows and columns on the host, whole: their kernels emulated, their results
   checked by their own oracle, at counts and shapes that are no multiples of anything. Time and bandwidth mean nothing here. */
#define TAP_WITHOUT_MPI
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

extern "C" {
#include "tests/tap.h"
}
#include "emulation.h"
#include "kernels/ladder/input.h" /* first: it says that base/ is C */

#include "kernels/ladder/ladder_experiments.h"

static void ladder_empty(struct gpu *gpu)
{
    for (void *place : gpu->buffers)
        free(place);
    for (void *place : gpu->host)
        free(place);
}

/* One table; how many rows it has, or -1 if it is not right. */
static int run(ladder_run *experiment, const struct ladder_request *request, char why[400])
{
    struct gpu gpu = {};
    struct table table = {};
    struct error error = {};
    int rows = -1;
    gpu.device.multiprocessors = 3;
    gpu.device.threads_per_multiprocessor = 2048;
    gpu.device.datasheet = 2e9;
    if (experiment(&gpu, request, &table, &error) != ALLFOLD_OK)
        snprintf(why, 400, "%.390s", error.text);
    else if (table.is_wrong)
        for (int i = 0; i < table.row_count; i++) {
            const struct table_cell *const verdict = table_cell(&table, i, COLUMN_CORRECT);
            if (verdict->number == 0.0)
                snprintf(why, 400, "row %d: %s", i, verdict->text);
        }
    else
        rows = table.row_count;
    table_free(&table);
    ladder_empty(&gpu);
    return rows;
}

/* All parts, in two orders of threads and blocks; many blocks in one. */
static void test(const char *name, ladder_run *experiment, int parts, struct ladder_request request, int rows)
{
    char why[400] = "";
    int runs = 0, orders = request.count > 50000 ? 1 : 2;
    if (!tap_wanted("%s of %llu, %llu columns", name, (unsigned long long)request.count, (unsigned long long)request.columns))
        return;
    for (request.part = 0; request.part < parts; request.part++)
        for (int order = 0; order < orders; order++) {
            emulation_order((uint64_t)order * (request.count + 1));
            const int found = run(experiment, &request, why);
            runs += found >= rows;
            if (found < rows)
                tap_note("part %d: %d rows, expected %d at least: %s", request.part, found, rows, why);
        }
    tap_ok(parts > 0 && runs == orders * parts, "%s of %llu, %llu columns", name, (unsigned long long)request.count, (unsigned long long)request.columns);
}

static const struct ladder_request plain = {ALLFOLD_INT32, ALLFOLD_SUM, 0, 64, -1, 0, 0, {0, 0}};

static struct ladder_request request_of(uint64_t count, uint64_t columns, int block)
{
    struct ladder_request request = plain;
    request.count = count;
    request.columns = columns;
    request.block = block;
    return request;
}

/* All rungs of a chapter over matrices with so many lines, of such a length: timed, and only checked. */
static void test_lines(const char *name, ladder_run *timed, ladder_run *checked, const struct ladder_rung_list *rungs)
{
    static const struct {
        uint64_t count, length;
    } shapes[] = {{0, 0},   {0, 5},   {5, 0},  {1, 1},    {1, 31},   {31, 1},   {1, 33},     {33, 1},    {2, 3},    {3, 2},
                  {99, 5},  {65, 9},  {70, 17}, {33, 16}, {31, 33},  {33, 32},  {7, 129},    {64, 31},   {300, 37}, {37, 1001},
                  {2, 4096}, {3, 4097}, {8, 128}, {129, 256}, {256, 24}, {257, 130}, {1, 16385}, {6, 16500}};
    const bool rows = rungs == &ladder_row_rungs;
    struct ladder_request request = plain;
    struct table table = {};
    struct error error = {};
    char why[400] = "";
    uint64_t order = 0;
    bool right = true;
    if (!tap_wanted("%s, every rung and shape", name) && !tap_wanted("%s, one rung, checked", name))
        return;
    for (const auto &shape : shapes) {
        request.shape = {rows ? shape.count : shape.length, rows ? shape.length : shape.count};
        request.count = shape.count * shape.length;
        emulation_order(order++);
        right = run(timed, &request, why) == rungs->count;
        if (!right) {
            tap_note("%llu of length %llu: %s", (unsigned long long)shape.count, (unsigned long long)shape.length, why);
            break;
        }
    }
    tap_ok(right, "%s, every rung and shape", name);
    struct gpu gpu = {};
    gpu.device.multiprocessors = 3;
    request.rung = rungs->count - 2;
    ladder_check_begin(&table);
    tap_ok(checked(&gpu, &request, &table, &error) == ALLFOLD_OK && table.row_count == 1 && !table.is_wrong && table.cells[1].number == 1.0,
           "%s, one rung, checked", name);
    table_free(&table);
    ladder_empty(&gpu);
}

int main()
{
    test_lines("rows", ladder_rows_run, ladder_rows_check, &ladder_row_rungs);
    test_lines("columns", ladder_columns_run, ladder_columns_check, &ladder_column_rungs);
    static const struct {
        uint64_t rows, columns, more;
    } shapes[] = {{1, 1, 0},   {1, 257, 0},   {257, 1, 0},   {31, 33, 0},    {32, 256, 0},   {256, 32, 0},
                  {33, 255, 17}, {70, 300, 0}, {100, 1000, 0}, {300, 70, 69}, {2, 66000, 0}, {66000, 2, 1}};
    for (auto shape : shapes)
        test("coalescing", ladder_coalescing, 2, request_of(shape.rows * shape.columns + shape.more, shape.columns, 64), 4);
    for (uint64_t count : {0, 1, 2, 1000})
        test("coalescing", ladder_coalescing, 2, request_of(count, 0, 64), 4);
    for (uint64_t count : {0, 1, 3, 65, 4099, 24577}) {
        test("parallelism", ladder_parallelism, 1, request_of(count, 0, 64), 32);
        test("occupancy", ladder_occupancy, 3, request_of(count, 0, 64), 7);
    }
    for (int block : {64, 256})
        for (uint64_t count : {0, 1, 63, 65, 2048, 32769})
            test("granularity", ladder_granularity, 1, request_of(count, 0, block), 6);
    test("granularity", ladder_granularity, 1, request_of(100003, 0, 1024), 6);
    return tap_done();
}
