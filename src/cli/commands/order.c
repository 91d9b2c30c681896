/* Runs quantile, median, topk and histogram. */
#include "core/order.h"

#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/names.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBERS_MOST = 1 << 16, TOP_MOST = 1 << 20, BINS_MOST = 1 << 20, PRINTED_MOST = 1000, BAR_MOST = 50 };

/* What one of the commands was told, and what it found. */
struct order_run {
    enum order_command which;
    double *q;
    uint64_t count; /* of quantiles, elements or bins */
    allfold_result *results;
    struct order_top *top;
    allfold_bins bins;
    double *edges;
    int64_t *counts;
    allfold_outside outside;
    struct session_output output;
    struct sink **sinks; /* NULL: nothing is written */
};

/* ---- arguments */

/* Numbers with commas between them. */
static uint64_t parse_numbers(const char *option, const char *text, double *numbers, uint64_t most, struct error *error)
{
    uint64_t count = 0;
    char word[64];
    for (const char *at = text; at != NULL && error->status == ALLFOLD_OK; count++)
        if (count == most || !parse_item(&at, ',', word, sizeof word) || !parse_real(word, &numbers[count]))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "--%s: expected up to %" PRIu64 " numbers with commas between them, found '%.100s'", option, most, text);
    return count;
}

static void take_quantiles(struct session *session, struct order_run *run)
{
    const char *const text = run->which == ORDER_MEDIAN ? "0.5" : session->settings->order.q;
    struct error *const error = &session->error;
    run->q = calloc(NUMBERS_MOST, sizeof *run->q);
    run->results = calloc(NUMBERS_MOST, sizeof *run->results);
    if (run->q == NULL || run->results == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for quantiles");
    else
        run->count = parse_numbers("q", text, run->q, NUMBERS_MOST, error);
    for (uint64_t i = 0; i < run->count && error->status == ALLFOLD_OK; i++)
        if (!(run->q[i] >= 0 && run->q[i] <= 1))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "--q: expected numbers from 0 to 1, found %g", run->q[i]);
}

static void take_top(struct session *session, struct order_run *run)
{
    run->count = session->settings->order.k;
    if (run->count > TOP_MOST)
        error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "--k: expected at most %d, as every rank holds that many elements, found %" PRIu64, TOP_MOST, run->count);
    run->top = session->error.status == ALLFOLD_OK ? calloc(run->count + 1, sizeof *run->top) : NULL;
    if (run->top == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " elements", run->count);
}

/* Rank 0: the numbers of a file, of any type. */
static double *read_edges(struct session *session, uint64_t *count)
{
    const char *const name = session->settings->order.edges;
    struct error *const error = &session->error;
    struct array_info *const info = calloc(1, sizeof *info);
    struct source *source = NULL;
    double *edges = NULL;
    unsigned char *elements = NULL;
    uint64_t found = 0;
    if (info == NULL || array_describe(name, NULL, info, error) != ALLFOLD_OK)
        goto end;
    const uint64_t n = info->count;
    names_refuse_read(session, info, name, "the edges");
    if (array_is_chunked(info)) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "--edges=%s: the row is stored in chunks: expected one without, as of .npy", file_shown(name));
        goto end;
    } else if (info->dimensions != 1 || n < 2 || n > BINS_MOST + 1) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "--edges=%s: expected a row of 2 to %d numbers, found %" PRIu64 " in %u dimension%s", file_shown(name),
                  BINS_MOST + 1, n, info->dimensions, info->dimensions == 1 ? "" : "s");
        goto end;
    }
    const size_t each = allfold_type_bytes(info->type);
    edges = malloc(n * sizeof *edges);
    if (edges == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " edges", n);
    else if (source_open(info, &source, error) == ALLFOLD_OK && (elements = source_read_all(source, n, &found, error)) != NULL && found < n)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "--edges=%s: expected numbers, found %" PRIu64 " missing values", file_shown(name), n - found);
    for (uint64_t i = 0; i < found; i++) {
        uint64_t bits = 0;
        memcpy(&bits, elements + i * each, each);
        edges[i] = order_real(info->type, order_key(info->type, bits));
    }
    *count = n;
end:
    source_close(source);
    free(elements);
    if (info != NULL)
        array_release(info);
    free(info);
    return edges;
}

/* Every rank gets the edges of the file. */
static void share_edges(struct session *session, struct order_run *run)
{
    struct comm *const comm = session_comm(session);
    uint64_t n = 0;
    double *const own = comm->rank == 0 ? read_edges(session, &n) : NULL;
    if (comm_broadcast(comm, 0, &n, sizeof n, &session->error) != ALLFOLD_OK) {
        free(own);
        return;
    }
    double *const edges = own != NULL ? own : malloc(n * sizeof *edges);
    if (edges == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " edges", n);
    if (session_agree(session) && comm_broadcast(comm, 0, edges, n * sizeof *edges, &session->error) == ALLFOLD_OK)
        for (uint64_t i = 0; i < n; i++)
            if (isnan(edges[i]) || (i > 0 && edges[i] < edges[i - 1]))
                error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "--edges: expected numbers of which none is below the one before, found %g at index %" PRIu64,
                          edges[i], i);
    run->bins.edges = edges;
    run->count = n - 1;
}

static void take_bins(struct session *session, struct order_run *run)
{
    const struct order_settings *const settings = &session->settings->order;
    struct error *const error = &session->error;
    double range[2];
    run->count = settings->bins > 0 ? settings->bins : 10;
    if (settings->edges != NULL && (settings->bins > 0 || settings->range != NULL))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "histogram: expected --edges, or --bins and --range, found both");
    else if (run->count > BINS_MOST)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "--bins: expected at most %d, found %" PRIu64, BINS_MOST, run->count);
    else if (settings->range != NULL && parse_numbers("range", settings->range, range, 2, error) != 2)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "--range: expected A,B, found '%.100s'", settings->range);
    if (error->status == ALLFOLD_OK && settings->range != NULL) {
        run->bins.has_range = 1;
        run->bins.low = range[0];
        run->bins.high = range[1];
        if (!(isfinite(range[0]) && isfinite(range[1]) && range[0] <= range[1]))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "--range: expected finite numbers, the lesser one first, found '%.100s'", settings->range);
    }
    if (error->status == ALLFOLD_OK && settings->edges != NULL)
        share_edges(session, run);
    run->bins.count = run->count;
    run->edges = calloc(run->count + 1, sizeof *run->edges);
    run->counts = calloc(run->count + 1, sizeof *run->counts);
    if (run->edges == NULL || run->counts == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " bins", run->count);
}

/* ---- work */

static uint64_t seen_of(const struct session *session, const struct order_run *run)
{
    return run->which == ORDER_HISTOGRAM ? run->outside.count : run->which != ORDER_TOPK ? run->results[0].count : session->input.count;
}

/* Collective. Rank 0 writes. */
static void work(struct session *session, void *user)
{
    struct order_run *const run = user;
    const struct order_settings *const settings = &session->settings->order;
    struct error *const error = &session->error;
    struct job job;
    session_source(session, &job);
    const struct order_input input = {.source = job.source, .type = job.type, .range = job.range, .nan = session->settings->nan,
                                      .progress = job.progress};
    const allfold_quantiles quantiles = {.q = run->q, .count = run->count, .method = (allfold_quantile_method)settings->method, .nan = input.nan};
    if (run->which == ORDER_TOPK)
        core_topk(session->context, &input, run->count, settings->smallest, run->top, error);
    else if (run->which == ORDER_HISTOGRAM)
        core_histogram(session->context, &input, &run->bins, run->edges, run->counts, &run->outside, error);
    else
        core_quantile(session->context, &input, &quantiles, run->results, error);
    source_close(job.source);
    if (error->status != ALLFOLD_OK)
        return;
    session->missing = session->input.count - seen_of(session, run);
    if (run->sinks == NULL || session_comm(session)->rank != 0 || run->count == 0)
        return;
    if (run->which == ORDER_HISTOGRAM) {
        run->sinks[0]->write(run->sinks[0], 0, run->count, run->counts, error);
        run->sinks[1]->write(run->sinks[1], 0, run->count + 1, run->edges, error);
        return;
    }
    const size_t each = allfold_type_bytes(session->input.type);
    char *const values = malloc(run->count * each);
    int64_t *const indices = malloc(run->count * sizeof *indices);
    if (values == NULL || indices == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " elements", run->count);
    for (uint64_t i = 0; i < run->count && error->status == ALLFOLD_OK; i++) {
        memcpy(values + i * each, &run->top[i].bits, each); /* little-endian: the low bytes */
        indices[i] = (int64_t)run->top[i].index;
    }
    if (error->status == ALLFOLD_OK) {
        run->sinks[0]->write(run->sinks[0], 0, run->count, values, error);
        run->sinks[1]->write(run->sinks[1], 0, run->count, indices, error);
    }
    free(values);
    free(indices);
}

/* ---- reports */

static struct fold_field field_of(allfold_value value, uint64_t index) { return (struct fold_field){.name = "value", .value = value, .index = index}; }

static struct fold_field top_field(const struct session *session, const struct order_run *run, uint64_t i)
{
    const allfold_type type = session->input.type;
    return field_of(order_value(type, order_key(type, run->top[i].bits)), run->top[i].index);
}

static struct json_object *values_json(const struct session *session, const struct order_run *run)
{
    struct json_object *const list = json_object_new_array();
    for (uint64_t i = 0; i < run->count; i++) {
        struct json_object *const object = json_object_new_object();
        const struct fold_field field = run->which == ORDER_TOPK ? top_field(session, run, i) : field_of(run->results[i].value, ALLFOLD_NO_INDEX);
        if (run->which == ORDER_QUANTILE)
            json_object_object_add(object, "q", report_value((allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = run->q[i]}));
        report_add_value(object, &session->input, &field);
        json_object_array_add(list, object);
    }
    return list;
}

static void bins_json(const struct order_run *run, struct json_object *report)
{
    struct json_object *const counts = json_object_new_array(), *const edges = json_object_new_array();
    for (uint64_t i = 0; i < run->count; i++)
        json_object_array_add(counts, json_object_new_int64(run->counts[i]));
    for (uint64_t i = 0; i <= run->count; i++)
        json_object_array_add(edges, report_value((allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = run->edges[i]}));
    json_object_object_add(report, "counts", counts);
    json_object_object_add(report, "edges", edges);
}

static void outside_json(const struct order_run *run, struct json_object *report)
{
    json_object_object_add(report, "below", json_object_new_uint64(run->outside.below));
    json_object_object_add(report, "above", json_object_new_uint64(run->outside.above));
    json_object_object_add(report, "nan", json_object_new_uint64(run->outside.nan));
}

static void print_json(const struct session *session, const struct order_run *run, double seconds)
{
    struct json_object *const report = report_begin(session, ALLFOLD_LEVEL_EXACT);
    if (run->sinks != NULL)
        json_object_object_add(report, "output", report_string(session->settings->output));
    else if (run->which == ORDER_HISTOGRAM)
        bins_json(run, report);
    else
        json_object_object_add(report, "values", values_json(session, run));
    if (run->which == ORDER_HISTOGRAM)
        outside_json(run, report);
    report_end(session, report, seconds);
}

static void print_bins(const struct order_run *run, bool bars)
{
    int64_t most = 1;
    for (uint64_t i = 0; i < run->count; i++)
        most = run->counts[i] > most ? run->counts[i] : most;
    for (uint64_t i = 0; i < run->count; i++) {
        printf("  %-24s %-24s %" PRId64, number_shortest(run->edges[i]).text, number_shortest(run->edges[i + 1]).text, run->counts[i]);
        if (bars)
            printf("%*s %.*s", 20 - snprintf(NULL, 0, "%" PRId64, run->counts[i]), "", (int)((double)run->counts[i] / (double)most * BAR_MOST),
                   "##################################################");
        putchar('\n');
    }
}

static void print_text(const struct session *session, const struct order_run *run, double seconds)
{
    if (!session->settings->quiet) {
        fputs(session->settings->command->name, stdout);
        report_circumstances(session, ALLFOLD_LEVEL_EXACT, seconds);
    }
    if (run->which == ORDER_HISTOGRAM) {
        if (run->sinks == NULL)
            print_bins(run, !session->settings->quiet && isatty(STDOUT_FILENO));
        printf("  below %" PRIu64 ", above %" PRIu64 ", NaN %" PRIu64 "\n", run->outside.below, run->outside.above, run->outside.nan);
        return;
    }
    if (run->sinks != NULL)
        return;
    for (uint64_t i = 0; i < run->count; i++) {
        if (run->which == ORDER_TOPK) {
            const struct fold_field field = top_field(session, run, i);
            printf("  %s", number_value(field.value).text);
            report_index(&session->input, field.index);
            putchar('\n');
        } else {
            printf("  %-12s %s\n", number_shortest(run->q[i]).text, number_value(run->results[i].value).text);
        }
    }
}

static void print_report(struct session *session, const struct order_run *run, double seconds)
{
    if (run->which == ORDER_MEDIAN) {
        const struct fold_results found = {.count = run->results[0].count, .level = ALLFOLD_LEVEL_EXACT, .field_count = 1,
                                           .fields = {field_of(run->results[0].value, ALLFOLD_NO_INDEX)}};
        report_fold(session, &found, seconds);
        return;
    }
    progress_end();
    if (session->settings->json)
        print_json(session, run, seconds);
    else
        print_text(session, run, seconds);
}

/* ---- */

static void take_arguments(struct session *session, struct order_run *run)
{
    if (run->which == ORDER_TOPK)
        take_top(session, run);
    else if (run->which == ORDER_HISTOGRAM)
        take_bins(session, run);
    else
        take_quantiles(session, run);
    if (session->error.status == ALLFOLD_OK && run->which >= ORDER_TOPK && session->settings->output == NULL && !session->settings->json
        && run->count > PRINTED_MOST)
        error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "%s: expected -o FILE.npz or --json for %" PRIu64 " results: up to %d are printed",
                  session->settings->command->name, run->count, PRINTED_MOST);
    if (run->which >= ORDER_TOPK && session->settings->output != NULL && !file_name_ends(session->settings->output, ".npz"))
        error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name that ends in .npz, found %s", session->settings->command->name,
                  file_shown(session->settings->output));
    session_agree(session);
}

static void write_archive(struct session *session, struct order_run *run)
{
    const bool bins = run->which == ORDER_HISTOGRAM;
    run->output = (struct session_output){.path = session->settings->output, .archive = true,
        .arrays = {.info = &session->input, .count = 2, .names = {bins ? "counts" : "values", bins ? "edges" : "indices"},
                   .types = {bins ? ALLFOLD_INT64 : session->input.type, bins ? ALLFOLD_F64 : ALLFOLD_INT64}, .is_row = true,
                   .rows = {run->count, run->count + bins}}};
    run->sinks = run->output.sinks;
    session_write(session, &(struct session_outputs){&run->output, 1, work, run, NULL, false});
}

void order_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct order_run run = {.which = (enum order_command)settings->command->which};
    session_describe(session, settings->operands, settings->operand_count);
    if (session->error.status == ALLFOLD_OK)
        take_arguments(session, &run);
    if (session->error.status == ALLFOLD_OK && run.which >= ORDER_TOPK && settings->output != NULL)
        write_archive(session, &run);
    else if (session->error.status == ALLFOLD_OK)
        work(session, &run);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        print_report(session, &run, seconds);
    free(run.q);
    free(run.results);
    free(run.top);
    free((void *)(uintptr_t)run.bins.edges);
    free(run.edges);
    free(run.counts);
}
