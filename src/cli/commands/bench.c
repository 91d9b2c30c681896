/* bench: measures the library and its peers in turn, on the same data. bench/ decides what is measured and how. This file parses
   the user's lists and runs every combination. */
#include "cli/commands/bench_report.h"
#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/ranks.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 64 };

/* What the user asked for, as lists. Every combination that makes sense is measured. */
struct bench_plan {
    uint64_t counts[LIST_MAX];
    allfold_type types[LIST_MAX];
    const struct bench_subject *subjects[LIST_MAX];
    int ranks[LIST_MAX];
    uint64_t lengths[LIST_MAX]; /* of the axis; one that is 0: whole arrays */
    enum bench_axis { AXIS_LAST, AXIS_MIDDLE, AXIS_FIRST } axes[LIST_MAX];
    int count_count, type_count, subject_count, rank_count, length_count, axis_count;
    double seconds, tolerance;
};

#define SECONDS_DEFAULT 0.3
#define TOLERANCE_DEFAULT 10.0 /* percent */
#define COUNTS_GPU "2^12,2^16,2^20,2^24,2^28" /* the short set */
#define COUNTS_CPU "2^10,2^16,2^20,2^24,2^26"
#define COUNTS_ALL "2^10,2^12,2^14,2^16,2^18,2^20,2^22,2^23,2^24,2^26,2^28,2^30,2^31"

/* Calls take for each item of a comma-separated list, until it refuses task. */
static bool for_items(const char *list, bool (*take)(struct bench_plan *plan, const char *item), struct bench_plan *plan,
                      char refused[64])
{
    while (list != NULL)
        if (!parse_item(&list, ',', refused, 64) || !take(plan, refused))
            return false;
    return true;
}

static bool take_count(struct bench_plan *plan, const char *item)
{
    return plan->count_count < LIST_MAX && parse_count(item, &plan->counts[plan->count_count])
           && plan->counts[plan->count_count] > 0 && plan->counts[plan->count_count++] <= MEASURED_COUNT_MAX;
}

static bool take_type(struct bench_plan *plan, const char *item)
{
    allfold_type type;
    if (plan->type_count == LIST_MAX || !type_by_name(item, &type))
        return false;
    for (int i = 0; i < bench_type_count; i++)
        if (bench_types[i] == type) {
            plan->types[plan->type_count++] = type;
            return true;
        }
    return false;
}

static bool take_subject(struct bench_plan *plan, const char *item)
{
    for (int i = 0; i < bench_subject_count; i++)
        if (plan->subject_count < LIST_MAX && strcmp(bench_subjects[i].name, item) == 0) {
            plan->subjects[plan->subject_count++] = &bench_subjects[i];
            return true;
        }
    return false;
}

static bool take_length(struct bench_plan *plan, const char *item)
{
    return plan->length_count < LIST_MAX && parse_count(item, &plan->lengths[plan->length_count]) && plan->lengths[plan->length_count++] > 0;
}

static bool take_axis(struct bench_plan *plan, const char *item)
{
    static const char *const names[] = {"last", "middle", "first"};
    for (int i = 0; i <= AXIS_FIRST && plan->axis_count < LIST_MAX; i++)
        if (strcmp(names[i], item) == 0) {
            plan->axes[plan->axis_count++] = (enum bench_axis)i;
            return true;
        }
    return false;
}

static bool take_ranks(struct bench_plan *plan, const char *item)
{
    uint64_t ranks;
    if (plan->rank_count == LIST_MAX || !parse_count(item, &ranks) || ranks < 1 || ranks > INT32_MAX)
        return false;
    plan->ranks[plan->rank_count++] = (int)ranks;
    return true;
}

static void plan_counts(const struct session *session, struct bench_plan *plan, struct error *error)
{
    const char *counts = session->settings->bench.counts;
    const bool gpu = session->context->device->backend->own_memory;
    char refused[64];
    counts = counts == NULL ? (gpu ? COUNTS_GPU : COUNTS_CPU) : strcmp(counts, "all") == 0 ? COUNTS_ALL : counts;
    if (!for_items(counts, take_count, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT,
                  "bench: --count: expected up to %d counts from 1 to 2^59, such as 2^20 or 1000,2^28, or all; found '%s'", LIST_MAX,
                  refused);
}

static void plan_types(const char *types, struct bench_plan *plan, struct error *error)
{
    char refused[64];
    if (types != NULL && strcmp(types, "all") == 0)
        for (int i = 0; i < bench_type_count; i++)
            plan->types[plan->type_count++] = bench_types[i];
    else if (!for_items(types != NULL ? types : "f32", take_type, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --type: expected some of f32,f64,bf16,f16,int32, or all; found '%s'",
                  refused);
}

static void plan_subjects(const char *folds, bool along_axis, struct bench_plan *plan, struct error *error)
{
    char refused[64];
    if (folds != NULL && strcmp(folds, "all") == 0)
        for (int i = 0; i < bench_subject_count; i++)
            plan->subjects[plan->subject_count++] = &bench_subjects[i];
    else if (!for_items(folds != NULL ? folds : along_axis ? "sum,max,softmax" : "sum,max,sumexp,softmax", take_subject, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT,
                  "bench: --fold: '%s' is not measured: see allfold bench --list for what is", refused);
}

static void plan_ranks(const char *ranks, int size, struct bench_plan *plan, struct error *error)
{
    char refused[64];
    if (ranks == NULL)
        plan->ranks[plan->rank_count++] = size;
    else if (strcmp(ranks, "all") == 0) {
        for (int n = 1; n < size && plan->rank_count < LIST_MAX - 1; n *= 2)
            plan->ranks[plan->rank_count++] = n;
        plan->ranks[plan->rank_count++] = size;
    } else if (!for_items(ranks, take_ranks, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --ranks: expected numbers such as 1 or 1,2,4, or all; found '%s'",
                  refused);
    for (int i = 0; i < plan->rank_count; i++)
        if (plan->ranks[i] > size)
            error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --ranks: %d ranks were asked for, and %d run: start more",
                      plan->ranks[i], size);
}

static void plan_axes(const struct bench_settings *asked, struct bench_plan *plan, struct error *error)
{
    char refused[64];
    if (asked->lengths == NULL) {
        plan->length_count = plan->axis_count = 1;
        return;
    }
    if (!for_items(asked->lengths, take_length, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --length: expected up to %d lengths from 1 on, such as 2^10,2^15; found '%s'", LIST_MAX,
                  refused);
    if (!for_items(asked->axes != NULL ? asked->axes : "last", take_axis, plan, refused))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --axis: expected some of last,middle,first; found '%s'", refused);
    if (asked->place != BENCH_ON_DEVICE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --length: rows are measured in device memory only: leave out --data");
}

/* The shape of `count` elements: rows; columns of planes, as many as a plane has columns or half as many, if their number is a power of
   two; or columns. Only whole rows count; outer is 0 if there are none. */
static struct bench_shape shape_of(uint64_t count, uint64_t length, enum bench_axis axis, bool cut_axis)
{
    const uint64_t rows = length > 0 ? count / length : 0;
    struct bench_shape shape = {rows, length, 1, cut_axis};
    if (axis == AXIS_FIRST && rows > 0)
        return (struct bench_shape){1, length, rows, cut_axis};
    for (; axis == AXIS_MIDDLE && shape.outer % 2 == 0 && shape.inner < shape.outer; shape.outer /= 2)
        shape.inner *= 2;
    return shape;
}

static bool makes_sense(const struct session *session, const struct bench_subject *subject, allfold_type type)
{
    return bench_takes_type(subject, type) && bench_takes_place(subject, session->settings->bench.place)
           && (session->settings->bench.lengths == NULL || bench_takes_axis(subject));
}

/* The number of elements on each of `ranks` ranks. */
static uint64_t rank_count(const struct session *session, uint64_t count, int ranks)
{
    return session->settings->bench.total ? u64_max(1, count / (uint64_t)ranks) : count;
}

/* Case number i of the plan; false if it does not make sense. The folds of one shape, count and type follow one another. */
static bool case_of(const struct session *session, const struct bench_plan *plan, int ranks, int i, struct bench_case *task)
{
    const struct bench_settings *const asked = &session->settings->bench;
    const struct bench_subject *const subject = plan->subjects[i % plan->subject_count];
    const enum bench_axis axis = plan->axes[(i /= plan->subject_count) % plan->axis_count];
    const uint64_t length = plan->lengths[(i /= plan->axis_count) % plan->length_count];
    const uint64_t count = rank_count(session, plan->counts[(i /= plan->length_count) % plan->count_count], ranks);
    *task = (struct bench_case){
        .subject = subject,
        .type = plan->types[i / plan->count_count],
        .range = asked->range != NULL ? atoi(asked->range) : BENCH_RANGE,
        .count = count,
        .shape = shape_of(count, length, axis, asked->cut_axis),
        .place = (enum bench_place)asked->place,
        .warm = asked->warm,
        .seconds = plan->seconds,
    };
    if (length > 0)
        task->count = task->shape.outer * task->shape.length * task->shape.inner;
    return task->count > 0 && makes_sense(session, subject, task->type);
}

static int case_count(const struct bench_plan *plan)
{
    return plan->type_count * plan->count_count * plan->length_count * plan->axis_count * plan->subject_count;
}

static allfold_status make_plan(const struct session *session, struct bench_plan *plan, struct error *error)
{
    const struct bench_settings *const asked = &session->settings->bench;
    *plan = (struct bench_plan){.seconds = asked->seconds > 0.0 ? asked->seconds : SECONDS_DEFAULT,
                          .tolerance = (asked->tolerance > 0.0 ? asked->tolerance : TOLERANCE_DEFAULT) / 100.0};
    plan_counts(session, plan, error);
    plan_types(asked->types, plan, error);
    plan_subjects(asked->folds, asked->lengths != NULL, plan, error);
    plan_axes(asked, plan, error);
    plan_ranks(asked->ranks, session->context->comm.size, plan, error);
    struct bench_case task;
    bool any = asked->survey;
    for (int i = 0; error->status == ALLFOLD_OK && i < case_count(plan) && !any; i++)
        any = case_of(session, plan, plan->ranks[0], i, &task);
    if (!any)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: nothing to measure: expected folds that these types, --data and --length can have "
                  "(exponentials are of floating-point types; --data=host has no softmax, --data=file no sumexp, dot, stats and "
                  "order statistics, --length no sumexp, dot, compare and order statistics, and at most as many elements as --count)");
    if (asked->place == BENCH_IN_HOST && !session->context->device->backend->own_memory)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "bench: --data=host is for GPUs: the CPU computes in host memory anyway");
    return error->status;
}

/* What the largest data of all cases needs. */
static struct bench_bytes largest(const struct session *session, const struct bench_plan *plan, int ranks)
{
    struct bench_bytes bytes = {0};
    for (int i = 0; i < case_count(plan) && !session->settings->bench.survey; i++) {
        struct bench_case task;
        if (!case_of(session, plan, ranks, i, &task))
            continue;
        bytes.x = u64_max(bytes.x, bench_input_bytes(&task) + 4096); /* between the operands of a dot product */
        bytes.y = u64_max(bytes.y, bench_output_bytes(&task));
    }
    bytes.host = session->settings->bench.place != BENCH_ON_DEVICE ? bytes.x : 0;
    return bytes;
}

/* Runs everything, on the ranks that take part. */
static void run_cases(struct session *session, const struct bench_plan *plan, struct bench *bench, int ranks,
                      struct bench_report *report)
{
    struct error *const error = &session->error;
    for (int i = 0; i < case_count(plan) && error->status == ALLFOLD_OK; i++) {
        struct bench_case task;
        const struct bench_row *rows;
        int count;
        if (case_of(session, plan, ranks, i, &task) && bench_run(bench, &task, &rows, &count, error) == ALLFOLD_OK
            && session_comm(session)->rank == 0)
            bench_report_case(report, &task, ranks, rows, count);
    }
}

static void run_ranks(struct session *session, const struct bench_plan *plan, int ranks, struct bench_report *report)
{
    const struct bench_bytes bytes = largest(session, plan, ranks);
    const struct bench_facts *facts = NULL;
    struct bench *bench = NULL;
    bench_open(&session->settings->context, ranks, &bytes, &bench, &session->error);
    if (bench != NULL && bench_survey(bench, &facts, &session->error) == ALLFOLD_OK) {
        if (session_comm(session)->rank == 0)
            bench_report_ranks(report, facts, ranks);
        if (!session->settings->bench.survey)
            run_cases(session, plan, bench, ranks, report);
    }
    bench_close(bench);
    session_agree(session);
}

static void print_peer(const char *peer, const char *timing_point, const char *text)
{
    printf("  %-14s %-9s %s\n", peer, timing_point, text);
}

static void print_list(void)
{
    puts("Folds:");
    for (int i = 0; i < bench_subject_count; i++)
        printf("  %-14s %s%s\n", bench_subjects[i].name, bench_subjects[i].text,
               bench_subjects[i].floating ? " (floating point only)" : "");
    puts("Peers and their timing points:");
    bench_peers_print(print_peer);
}

/* Rank 0: finishes the report. */
static void conclude(struct session *session, const struct bench_plan *plan, struct json_object *baseline,
                     struct bench_report *report)
{
    struct error *const error = &session->error;
    if (report->error.status != ALLFOLD_OK)
        *error = report->error;
    else if (report->wrong[0] != '\0')
        error_set(error, ALLFOLD_DEVICE_ERROR, "wrong: %s", report->wrong);
    else if (baseline != NULL)
        bench_baseline_compare(baseline, plan->tolerance, report, error);
    if (session->settings->bench.slow > 0.0 && report->slow[0] != '\0')
        error_set(error, ALLFOLD_DEVICE_ERROR, "bench: slow: %s", report->slow);
    bench_report_end(report);
}

void bench_command_run(struct session *session)
{
    const bool root = session_comm(session)->rank == 0;
    struct bench_plan plan;
    struct bench_report report = {0};
    struct json_object *baseline = NULL;
    ranks_tell_shared(session);
    if (session->settings->bench.list) {
        if (root)
            print_list();
        return;
    }
    if (make_plan(session, &plan, &session->error) == ALLFOLD_OK && root && session->settings->bench.baseline != NULL)
        baseline = bench_baseline_read(session->settings->bench.baseline, &session->error);
    if (session_agree(session)) {
        if (root)
            bench_report_begin(&report, session);
        for (int i = 0; i < plan.rank_count && session->error.status == ALLFOLD_OK; i++)
            run_ranks(session, &plan, plan.ranks[i], &report);
        if (root && session->error.status == ALLFOLD_OK)
            conclude(session, &plan, baseline, &report);
        json_object_put(report.object);
        session_agree(session);
    }
    json_object_put(baseline);
}
