/* Reports the ladder's tables as text and as JSON: see ladder_report.h. */
#include "cli/commands/ladder_report.h"

#include "cli/number.h"
#include "cli/report.h"
#include "cli/tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_request(struct json_object *object, unsigned takes, const struct ladder_request *request)
{
    if ((takes & LADDER_TAKES_TYPE) != 0)
        json_object_object_add(object, "dtype", json_object_new_string(allfold_type_name(request->type)));
    if ((takes & LADDER_TAKES_FOLD) != 0)
        json_object_object_add(object, "fold", json_object_new_string(allfold_fold_name(request->fold)));
    if ((takes & LADDER_TAKES_BLOCK) != 0)
        json_object_object_add(object, "block", json_object_new_int(request->block));
    json_object_object_add(object, "count", json_object_new_uint64(request->count));
}

static struct json_object *table_json(const struct table *table, int rank, unsigned takes, const struct ladder_request *request)
{
    struct json_object *object = json_object_new_object(), *rows = json_object_new_array();
    json_object_object_add(object, "rank", json_object_new_int(rank));
    json_object_object_add(object, "title", json_object_new_string(table->title));
    if (request != NULL)
        add_request(object, takes, request);
    table_add_facts(object, table);
    for (int i = 0; i < table->row_count; i++) {
        struct json_object *const row = json_object_new_object();
        table_add_row(row, table, i);
        json_object_array_add(rows, row);
    }
    json_object_object_add(object, "rows", rows);
    return object;
}

/* The results of one rank, as gathered: the table, whose pointers are valid on its own rank only, and its cells. */
struct gathered {
    char *bytes;
    size_t each;
};

static struct table gathered_table(const struct gathered *gathered, int rank)
{
    struct table table;
    char *const at = gathered->bytes + (size_t)rank * gathered->each;
    memcpy(&table, at, sizeof table);
    table.cells = (struct table_cell *)(void *)(at + sizeof table);
    return table;
}

/* The number of ranks that have a column in the comparison. */
static int shown_ranks(int ranks) { return ranks + 2 < TABLE_COLUMNS_MAX ? ranks : TABLE_COLUMNS_MAX - 2; }

/* A row of the comparison: a name, a column for each of the first ranks, and the spread over all ranks. */
static void compare_row(const struct gathered *gathered, const struct table *own, int ranks, int row, struct table_cell_text *texts)
{
    const int shown = shown_ranks(ranks);
    double least = INFINITY, most = 0.0;
    texts[0] = table_cell_text(table_columns[own->columns[0]].format, &own->cells[row * own->column_count]);
    for (int rank = 0; rank < ranks; rank++) {
        const struct table table = gathered_table(gathered, rank);
        const struct table_cell *const cell = table_cell(&table, row, COLUMN_SECONDS);
        least = cell->number < least ? cell->number : least;
        most = cell->number > most ? cell->number : most;
        if (rank < shown)
            texts[1 + rank] = table_cell_text(TABLE_SECONDS, cell);
    }
    snprintf(texts[1 + shown].text, sizeof texts->text, "%.1f", 100.0 * (most / least - 1.0));
}

/* Compares the times of the ranks' GPUs. */
static void print_comparison(const struct gathered *gathered, const struct table *own, int ranks)
{
    const int shown = shown_ranks(ranks);
    struct table_grid grid = {.rows = own->row_count + 1, .columns = shown + 2, .formats = {TABLE_TEXT}};
    grid.texts = calloc((size_t)grid.rows * (size_t)grid.columns, sizeof *grid.texts);
    if (grid.texts == NULL)
        return;
    snprintf(grid.texts[0].text, sizeof grid.texts->text, "%s", table_columns[own->columns[0]].heading);
    for (int i = 1; i < grid.columns; i++) {
        grid.formats[i] = TABLE_NUMBER;
        snprintf(grid.texts[i].text, sizeof grid.texts->text, i <= shown ? "rank %d" : "spread %%", i - 1);
    }
    for (int row = 0; row < own->row_count; row++)
        compare_row(gathered, own, ranks, row, grid.texts + (row + 1) * grid.columns);
    printf("\n  %s on each rank's GPU; spread: by how much the largest exceeds the least\n", table_columns[COLUMN_SECONDS].heading);
    table_grid_print(&grid, true);
    free(grid.texts);
}

static void print_tables(const struct ladder_report *report, const struct gathered *gathered,
                         const struct table *own)
{
    const struct session *const session = report->session;
    const int ranks = session->context->comm.size;
    const bool quiet = session->settings->quiet, each = session->settings->verbose;
    for (int rank = 0; rank < (each ? ranks : 1); rank++) {
        const struct table table = gathered_table(gathered, rank);
        char suffix[32] = "";
        if (ranks > 1)
            snprintf(suffix, sizeof suffix, ", rank %d", rank);
        if (!quiet) {
            printf("\n%s%s\n", table.title, suffix);
            table_print_facts(&table);
        }
        table_print_rows(&table, !quiet);
    }
    if (ranks > 1 && table_has(own, COLUMN_SECONDS) && !report->emulated)
        print_comparison(gathered, own, ranks);
    fflush(stdout);
}

bool ladder_report_alike(struct session *session, const int *mine, int count, const char *otherwise)
{
    struct comm *const comm = session_comm(session);
    const size_t bytes = (size_t)count * sizeof *mine;
    int *const all = comm_gather(comm, mine, bytes, &session->error);
    for (int rank = 0; all != NULL && rank < comm->size; rank++)
        if (memcmp(all + count * rank, mine, bytes) != 0)
            error_set(&session->error, ALLFOLD_DEVICE_ERROR, "ladder: rank %d %s: expected GPUs of one kind", rank, otherwise);
    free(all);
    return session_agree(session);
}

static struct json_object *device_json(const struct gpu_device *device, int rank, int sharing)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "rank", json_object_new_int(rank));
    json_object_object_add(object, "device", report_string(device->name));
    json_object_object_add(object, "uuid", report_string(device->uuid));
    json_object_object_add(object, "emulated", json_object_new_boolean(device->emulated));
    json_object_object_add(object, "index", json_object_new_int(device->index));
    json_object_object_add(object, "ranks_on_device", json_object_new_int(sharing));
    json_object_object_add(object, "multiprocessors", json_object_new_int(device->multiprocessors));
    json_object_object_add(object, "memory", json_object_new_uint64(device->memory));
    json_object_object_add(object, "l2", json_object_new_uint64(device->l2));
    json_object_object_add(object, "cuda_driver", json_object_new_int(device->driver));
    json_object_object_add(object, "cuda_runtime", json_object_new_int(device->runtime));
    return object;
}

static void print_device(const struct gpu_device *device, int rank, int sharing)
{
    if (device->emulated) {
        puts("No GPU: the kernels run on this CPU, the threads of a block one at a time in shuffled order. Every result is compared\n"
             "with the oracle; times need a GPU (docs/ladder.md has an H200's).");
        return;
    }
    printf("rank %d: %s, %s, %d multiprocessors, %s, CUDA driver %d.%d, runtime %d.%d", rank, device->name,
           device->uuid, device->multiprocessors, number_bytes((double)device->memory).text, device->driver / 1000,
           device->driver % 1000 / 10, device->runtime / 1000, device->runtime % 1000 / 10);
    if (sharing > 1)
        printf(", SHARED by %d ranks, whose times disturb each other", sharing);
    putchar('\n');
}

static void report_devices(struct ladder_report *report, const struct gpu_device *devices, int ranks)
{
    const struct settings *const settings = report->session->settings;
    for (int rank = 0; rank < ranks; rank++) {
        int sharing = 0; /* a UUID belongs to one GPU only */
        for (int other = 0; other < ranks; other++)
            sharing += strcmp(devices[rank].uuid, devices[other].uuid) == 0;
        if (settings->json)
            json_object_array_add(json_object_object_get(report->object, "devices"),
                                  device_json(&devices[rank], rank, sharing));
        else if (!settings->quiet && (rank == 0 || !report->emulated))
            print_device(&devices[rank], rank, sharing);
    }
}

void ladder_report_begin(struct session *session, const char *topic, const struct gpu_device *device,
                         struct ladder_report *report)
{
    struct comm *const comm = session_comm(session);
    struct gpu_device *const devices = comm_gather(comm, device, sizeof *device, &session->error);
    *report = (struct ladder_report){.session = session, .emulated = device->emulated};
    if (devices != NULL) {
        if (session->settings->json) {
            report->object = json_object_new_object();
            json_object_object_add(report->object, "command", json_object_new_string(session->settings->command->name));
            json_object_object_add(report->object, "topic", json_object_new_string(topic));
            json_object_object_add(report->object, "version", json_object_new_string(allfold_version()));
            json_object_object_add(report->object, "ranks", json_object_new_int(comm->size));
            json_object_object_add(report->object, "devices", json_object_new_array());
            json_object_object_add(report->object, "tables", json_object_new_array());
        }
        report_devices(report, devices, comm->size);
    }
    free(devices);
}

/* Remembers the first row that was wrong. */
static void note_wrong(struct ladder_report *report, const struct table *table)
{
    for (int row = 0; row < table->row_count && report->wrong[0] == '\0' && table->is_wrong; row++) {
        const struct table_cell *const verdict = table_cell(table, row, COLUMN_CORRECT);
        if (verdict->number == 0.0)
            snprintf(report->wrong, sizeof report->wrong, "%.100s: %.40s: %.90s", table->title,
                     table_cell_text(table_columns[table->columns[0]].format, table_cell(table, row, table->columns[0])).text, verdict->text);
    }
}

/* Collective. Gathers all ranks' tables on rank 0. */
static void gather(struct session *session, const struct table *table, struct gathered *gathered)
{
    const size_t cells = (size_t)table->row_count * (size_t)table->column_count * sizeof *table->cells;
    *gathered = (struct gathered){NULL, sizeof *table + cells};
    char *const mine = malloc(gathered->each);
    if (mine == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory for a copy of a table");
    else {
        memcpy(mine, table, sizeof *table);
        if (cells > 0)
            memcpy(mine + sizeof *table, table->cells, cells);
    }
    gathered->bytes = comm_gather(session_comm(session), mine, gathered->each, &session->error);
    free(mine);
}

void ladder_report_table(struct ladder_report *report, const struct ladder_topic *topic,
                         const struct ladder_request *request, const struct table *table)
{
    struct session *const session = report->session;
    const struct comm *const comm = session_comm(session);
    const int shape[] = {table->column_count, table->row_count, table->fact_count};
    struct gathered gathered = {NULL, 0};
    if (!session_agree(session))
        return;
    note_wrong(report, table);
    if (ladder_report_alike(session, shape, sizeof shape / sizeof *shape, "has a table that is not like rank 0's"))
        gather(session, table, &gathered);
    if (gathered.bytes != NULL) {
        for (int rank = 0; report->object != NULL && rank < comm->size; rank++) {
            const struct table one = gathered_table(&gathered, rank);
            json_object_array_add(json_object_object_get(report->object, "tables"),
                                  table_json(&one, rank, topic->takes, request));
        }
        if (report->object == NULL)
            print_tables(report, &gathered, table);
    }
    free(gathered.bytes);
}

void ladder_report_end(struct ladder_report *report)
{
    struct session *const session = report->session;
    const bool done = session->error.status == ALLFOLD_OK;
    if (done && report->wrong[0] != '\0')
        error_set(&session->error, ALLFOLD_DEVICE_ERROR, "wrong: %s", report->wrong);
    session_agree(session);
    if (report->object != NULL && done) {
        json_object_object_add(report->object, "correct", json_object_new_boolean(session->error.status == ALLFOLD_OK));
        report_print(report->object);
    } else
        json_object_put(report->object);
}
