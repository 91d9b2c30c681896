/* The ladder's tables as text and as JSON. */
#include "cli/commands/ladder_report.h"

#include "cli/number.h"
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cell_text {
    char text[LADDER_TEXT_BYTES + 16];
};

static struct cell_text cell_text(enum ladder_format format, const struct ladder_cell *cell)
{
    static const struct {
        const char *format;
        double unit;
    } shown[] = {
        [LADDER_INTEGER] = {"%.0f", 1}, [LADDER_NUMBER] = {"%.3g", 1},    [LADDER_SECONDS] = {"%.1f", 1e6},
        [LADDER_BANDWIDTH] = {"%.1f", 1e-9}, [LADDER_RATE] = {"%.1f", 1e-9}, [LADDER_PERCENT] = {"%.1f", 100},
        [LADDER_TIMES] = {"%.2fx", 1},
    };
    struct cell_text t;
    if (format == LADDER_TEXT)
        snprintf(t.text, sizeof t.text, "%s", cell->text);
    else if (isnan(cell->number))
        snprintf(t.text, sizeof t.text, "-");
    else if (format == LADDER_VERDICT && cell->number != 0.0)
        snprintf(t.text, sizeof t.text, "correct");
    else if (format == LADDER_VERDICT)
        snprintf(t.text, sizeof t.text, "WRONG: %s", cell->text);
    else
        snprintf(t.text, sizeof t.text, shown[format].format, cell->number * shown[format].unit);
    return t;
}

static struct json_object *cell_json(enum ladder_format format, const struct ladder_cell *cell)
{
    if (format == LADDER_TEXT)
        return report_string(cell->text);
    if (isnan(cell->number))
        return NULL;
    if (format == LADDER_VERDICT)
        return json_object_new_boolean(cell->number != 0.0);
    if (format == LADDER_INTEGER)
        return json_object_new_int64((int64_t)cell->number);
    return report_measured(cell->number);
}

static struct json_object *row_json(const struct ladder_table *table, int row)
{
    struct json_object *object = json_object_new_object();
    for (int i = 0; i < table->column_count; i++) {
        const struct ladder_column *const column = &table->columns[i];
        const struct ladder_cell *const cell = &table->cells[row * table->column_count + i];
        json_object_object_add(object, column->key, cell_json(column->format, cell));
        if (column->format == LADDER_VERDICT && cell->number == 0.0)
            json_object_object_add(object, "wrong", report_string(cell->text));
    }
    return object;
}

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

static struct json_object *table_json(const struct ladder_table *table, int rank, unsigned takes,
                                      const struct ladder_request *request)
{
    struct json_object *object = json_object_new_object(), *rows = json_object_new_array();
    json_object_object_add(object, "rank", json_object_new_int(rank));
    json_object_object_add(object, "title", json_object_new_string(table->title));
    if (request != NULL)
        add_request(object, takes, request);
    for (int i = 0; i < table->fact_count; i++)
        json_object_object_add(object, table->facts[i].key, cell_json(table->facts[i].format, &table->fact_cells[i]));
    for (int row = 0; row < table->row_count; row++)
        json_object_array_add(rows, row_json(table, row));
    json_object_object_add(object, "rows", rows);
    return object;
}

/* One line of texts below the headings. The last column is not padded. */
static void print_line(const struct cell_text *texts, const int *widths, const enum ladder_format *formats, int count)
{
    int last = count - 1;
    while (last > 0 && texts[last].text[0] == '\0')
        last--;
    for (int i = 0; i <= last; i++) {
        const bool left = formats[i] == LADDER_TEXT || formats[i] == LADDER_VERDICT;
        printf("  %*s", left ? (i == last ? 0 : -widths[i]) : widths[i], texts[i].text);
    }
    putchar('\n');
}

/* texts: rows of `count` cells, the first of which are headings. */
static void print_grid(const struct cell_text *texts, int rows, const enum ladder_format *formats, int count,
                       bool headings)
{
    int widths[LADDER_COLUMNS_MAX] = {0};
    for (int i = 0; i < rows * count; i++) {
        const int length = (int)strlen(texts[i].text);
        widths[i % count] = length > widths[i % count] ? length : widths[i % count];
    }
    for (int row = headings ? 0 : 1; row < rows; row++)
        print_line(texts + row * count, widths, formats, count);
}

/* The columns that people see. */
static void print_rows(const struct ladder_table *table, bool headings)
{
    enum ladder_format formats[LADDER_COLUMNS_MAX];
    int shown[LADDER_COLUMNS_MAX], count = 0;
    for (int i = 0; i < table->column_count; i++)
        if (table->columns[i].heading != NULL) {
            formats[count] = table->columns[i].format;
            shown[count++] = i;
        }
    const int rows = table->row_count + 1;
    struct cell_text *texts = malloc((size_t)rows * (size_t)count * sizeof *texts);
    if (texts == NULL)
        return;
    for (int i = 0; i < rows * count; i++) {
        const int column = shown[i % count], row = i / count - 1;
        if (row < 0)
            snprintf(texts[i].text, sizeof texts[i].text, "%s", table->columns[column].heading);
        else
            texts[i] = cell_text(table->columns[column].format, &table->cells[row * table->column_count + column]);
    }
    print_grid(texts, rows, formats, count, headings);
    free(texts);
}

static void print_title(const struct ladder_table *table, const char *suffix)
{
    static const char *const units[] = {[LADDER_SECONDS] = " us", [LADDER_BANDWIDTH] = " GB/s", [LADDER_PERCENT] = "%",
                                        [LADDER_VERDICT] = ""};
    printf("\n%s%s\n", table->title, suffix);
    for (int i = 0; i < table->fact_count; i++) {
        const struct ladder_column *const fact = &table->facts[i];
        const char *const unit = units[fact->format];
        if (fact->heading != NULL)
            printf("  %s: %s%s\n", fact->heading, cell_text(fact->format, &table->fact_cells[i]).text,
                   unit != NULL ? unit : "");
    }
}

/* The results of one rank, as gathered: the table, whose pointers are valid on its own rank only, and its cells. */
struct gathered {
    char *bytes;
    size_t each;
};

static struct ladder_table gathered_table(const struct gathered *gathered, const struct ladder_table *own, int rank)
{
    struct ladder_table table;
    char *const at = gathered->bytes + (size_t)rank * gathered->each;
    memcpy(&table, at, sizeof table);
    memcpy(table.columns, own->columns, sizeof table.columns);
    memcpy(table.facts, own->facts, sizeof table.facts);
    table.cells = (struct ladder_cell *)(void *)(at + sizeof table);
    return table;
}

/* The number of ranks that have a column in the comparison. */
static int shown_ranks(int ranks) { return ranks + 2 < LADDER_COLUMNS_MAX ? ranks : LADDER_COLUMNS_MAX - 2; }

/* A row of the comparison: a name, a column for each of the first ranks, and the spread over all ranks. */
static void compare_row(const struct gathered *gathered, const struct ladder_table *own, int ranks, int row,
                        struct cell_text *texts)
{
    const int shown = shown_ranks(ranks);
    double least = INFINITY, most = 0.0;
    texts[0] = cell_text(own->columns[0].format, &own->cells[row * own->column_count]);
    for (int rank = 0; rank < ranks; rank++) {
        const struct ladder_table table = gathered_table(gathered, own, rank);
        const struct ladder_cell *const cell = &table.cells[row * table.column_count + own->compared];
        least = cell->number < least ? cell->number : least;
        most = cell->number > most ? cell->number : most;
        if (rank < shown)
            texts[1 + rank] = cell_text(own->columns[own->compared].format, cell);
    }
    snprintf(texts[1 + shown].text, sizeof texts->text, "%.1f", 100.0 * (most / least - 1.0));
}

/* Compares the ranks' GPUs. */
static void print_comparison(const struct gathered *gathered, const struct ladder_table *own, int ranks)
{
    const int shown = shown_ranks(ranks), columns = shown + 2;
    enum ladder_format formats[LADDER_COLUMNS_MAX] = {LADDER_TEXT};
    struct cell_text *texts = calloc((size_t)(own->row_count + 1) * (size_t)columns, sizeof *texts);
    if (texts == NULL)
        return;
    snprintf(texts[0].text, sizeof texts->text, "%s", own->columns[0].heading);
    for (int i = 1; i < columns; i++) {
        formats[i] = LADDER_NUMBER;
        snprintf(texts[i].text, sizeof texts->text, i <= shown ? "rank %d" : "spread %%", i - 1);
    }
    for (int row = 0; row < own->row_count; row++)
        compare_row(gathered, own, ranks, row, texts + (row + 1) * columns);
    printf("\n  %s on each rank's GPU; spread: by how much the largest exceeds the least\n",
           own->columns[own->compared].heading);
    print_grid(texts, own->row_count + 1, formats, columns, true);
    free(texts);
}

static void print_tables(const struct ladder_report *report, const struct gathered *gathered,
                         const struct ladder_table *own)
{
    const struct session *const session = report->session;
    const int ranks = session->context->comm.size;
    const bool quiet = session->settings->quiet, each = session->settings->verbose;
    for (int rank = 0; rank < (each ? ranks : 1); rank++) {
        const struct ladder_table table = gathered_table(gathered, own, rank);
        char suffix[32] = "";
        if (ranks > 1)
            snprintf(suffix, sizeof suffix, ", rank %d", rank);
        if (!quiet)
            print_title(&table, suffix);
        print_rows(&table, !quiet);
    }
    if (ranks > 1 && own->compared >= 0)
        print_comparison(gathered, own, ranks);
    fflush(stdout);
}

/* Whether all ranks' tables have the shape of this one; on rank 0. */
static void check_shapes(struct session *session, const struct ladder_table *table)
{
    struct comm *const comm = session_comm(session);
    const int mine[3] = {table->column_count, table->row_count, table->fact_count};
    int *const all = comm_gather(comm, mine, sizeof mine, &session->error);
    for (int rank = 0; all != NULL && rank < comm->size; rank++)
        if (memcmp(all + 3 * rank, mine, sizeof mine) != 0)
            error_set(&session->error, ALLFOLD_DEVICE_ERROR,
                      "rank %d's table is not like rank 0's: are the GPUs of one kind?", rank);
    session_agree(session);
    free(all);
}

static struct json_object *device_json(const struct gpu_device *device, int rank, int sharing)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "rank", json_object_new_int(rank));
    json_object_object_add(object, "device", report_string(device->name));
    json_object_object_add(object, "uuid", report_string(device->uuid));
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
        else if (!settings->quiet)
            print_device(&devices[rank], rank, sharing);
    }
}

void ladder_report_begin(struct session *session, const char *topic, const struct gpu_device *device,
                         struct ladder_report *report)
{
    struct comm *const comm = session_comm(session);
    struct gpu_device *const devices = comm_gather(comm, device, sizeof *device, &session->error);
    *report = (struct ladder_report){.session = session};
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
static void note_wrong(struct ladder_report *report, const struct ladder_table *table)
{
    if (table->correct || report->wrong[0] != '\0')
        return;
    snprintf(report->wrong, sizeof report->wrong, "%s", table->title);
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const struct ladder_cell *const row = &table->cells[i / table->column_count * table->column_count];
        if (table->columns[i % table->column_count].format == LADDER_VERDICT && table->cells[i].number == 0.0) {
            snprintf(report->wrong, sizeof report->wrong, "%.100s: %.40s: %.90s", table->title,
                     cell_text(table->columns[0].format, row).text, table->cells[i].text);
            return;
        }
    }
}

/* Collective. Gathers all ranks' tables on rank 0. */
static void gather(struct session *session, const struct ladder_table *table, struct gathered *gathered)
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
                         const struct ladder_request *request, const struct ladder_table *table)
{
    struct session *const session = report->session;
    const struct comm *const comm = session_comm(session);
    struct gathered gathered = {NULL, 0};
    if (!session_agree(session))
        return;
    note_wrong(report, table);
    check_shapes(session, table);
    if (session->error.status == ALLFOLD_OK)
        gather(session, table, &gathered);
    if (gathered.bytes != NULL) {
        for (int rank = 0; report->object != NULL && rank < comm->size; rank++) {
            const struct ladder_table one = gathered_table(&gathered, table, rank);
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
