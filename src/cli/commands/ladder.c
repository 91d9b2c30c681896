/* ladder: reduction kernels for learning, each checked and timed on every rank's own GPU, and experiments about them; without a GPU
   the kernels are emulated, and checked only. kernels/ladder has them. This file runs those that the user asked for. */
#include "cli/commands/ladder_report.h"
#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/commands/ladder_machine.h"
#include "cli/report.h"
#include "cli/suggest.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_MAX = 64, SHAPES_MAX = 64 };
#define BLOCK_DEFAULT "256"

/* Numbers first, first + step, ... last. */
struct counts {
    uint64_t first, last, step;
};

/* What the user asked for, as lists. Every combination is run. */
struct ladder_plan {
    const struct ladder_machine *machine;
    const struct ladder_topic *topic;
    struct counts counts[RANGES_MAX];
    struct ladder_shape shapes[SHAPES_MAX]; /* of topics that have shapes, instead of counts */
    allfold_type types[3];
    allfold_fold folds[2];
    int blocks[5];
    int count_count, shape_count, type_count, fold_count, block_count;
    int rung;
};

/* "1000", "2^24", "0-70" or "71-4200:59". */
static bool parse_range(char *text, struct counts *counts)
{
    char *const dash = strchr(text, '-'), *const colon = dash != NULL ? strchr(dash, ':') : NULL;
    if (dash != NULL)
        *dash = '\0';
    if (colon != NULL)
        *colon = '\0';
    counts->step = 1;
    if (!parse_count(text, &counts->first))
        return false;
    counts->last = counts->first;
    if (dash != NULL && !parse_count(dash + 1, &counts->last))
        return false;
    if (colon != NULL && !parse_count(colon + 1, &counts->step))
        return false;
    return counts->first <= counts->last && counts->last <= MEASURED_COUNT_MAX && counts->step > 0
           && counts->step <= MEASURED_COUNT_MAX;
}

/* Comma-separated ranges. */
static allfold_status parse_counts(const char *text, struct ladder_plan *plan, struct error *error)
{
    char item[100];
    bool right = true;
    for (const char *at = text; right && at != NULL;)
        right = plan->count_count < RANGES_MAX && parse_item(&at, ',', item, sizeof item) && parse_range(item, &plan->counts[plan->count_count++]);
    if (right)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "ladder: --count: expected counts such as 2^24 or 1000,2^20 or 0-70 or 0-4200:7, found '%.100s'",
                     text);
}

/* "2^18,1000": a launch has fewer than 2^31 blocks, so a matrix has no more rows or columns. */
static bool parse_shape(char *text, struct ladder_shape *shape)
{
    char *const comma = strchr(text, ',');
    if (comma == NULL)
        return false;
    *comma = '\0';
    return parse_count(text, &shape->rows) && parse_count(comma + 1, &shape->columns) && shape->rows <= INT32_MAX
           && shape->columns <= INT32_MAX && shape->rows * shape->columns <= MEASURED_COUNT_MAX;
}

/* Shapes separated by blanks. */
static allfold_status parse_shapes(const char *text, struct ladder_plan *plan, struct error *error)
{
    char item[100];
    bool right = true;
    for (const char *at = text; right && at != NULL;)
        right = plan->shape_count < SHAPES_MAX && parse_item(&at, ' ', item, sizeof item) && parse_shape(item, &plan->shapes[plan->shape_count++]);
    if (right)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "ladder: --shape: expected ROWS,COLUMNS such as 2^18,1000, each below 2^31, found '%.100s'", text);
}

static allfold_status find_topic(const char *name, struct ladder_plan *plan, struct error *error)
{
    const char *names[16];
    size_t count = 0;
    for (int i = 0; i < plan->machine->topic_count; i++) {
        if (strcmp(plan->machine->topics[i].name, name) == 0) {
            plan->topic = &plan->machine->topics[i];
            return ALLFOLD_OK;
        }
        if (count < sizeof names / sizeof *names)
            names[count++] = plan->machine->topics[i].name;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder: '%.100s' is no topic%s: see allfold ladder --help", name,
                     suggest(name, names, count, "").text);
}

static allfold_status find_rung(const char *name, struct ladder_plan *plan, struct error *error)
{
    const struct ladder_rung_list *const list = plan->topic->rungs;
    const char *names[64];
    size_t count = 0;
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->rungs[i].name, name) == 0) {
            plan->rung = i;
            return ALLFOLD_OK;
        }
        if (count < sizeof names / sizeof *names)
            names[count++] = list->rungs[i].name;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder: --rung: '%.100s' is no rung%s: see allfold ladder%s%s --list", name,
                     suggest(name, names, count, "").text, plan->topic->name[0] != '\0' ? " " : "", plan->topic->name);
}

/* Refuses an option that is given but has no meaning for the topic. */
static void refuse(const struct ladder_plan *plan, bool given, bool takes, const char *name, struct error *error)
{
    if (given && !takes)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder%s%s takes no --%s", plan->topic->name[0] != '\0' ? " " : "",
                  plan->topic->name, name);
}

static allfold_status refuse_options(const struct settings *settings, const struct ladder_plan *plan, struct error *error)
{
    const struct ladder_settings *const asked = &settings->ladder;
    const struct ladder_topic *const topic = plan->topic;
    refuse(plan, asked->type != NULL, topic->takes & LADDER_TAKES_TYPE, "type", error);
    refuse(plan, asked->fold != NULL, topic->takes & LADDER_TAKES_FOLD, "fold", error);
    refuse(plan, asked->block != NULL, topic->takes & LADDER_TAKES_BLOCK, "block", error);
    refuse(plan, asked->rung != NULL, topic->takes & LADDER_TAKES_RUNG, "rung", error);
    refuse(plan, settings->check, topic->takes & LADDER_TAKES_CHECK, "check", error);
    refuse(plan, asked->columns != 0, topic->takes & LADDER_TAKES_COLUMNS, "columns", error);
    refuse(plan, asked->counts != NULL, topic->counts != NULL, "count", error);
    refuse(plan, asked->shapes != NULL, topic->shapes != NULL, "shape", error);
    refuse(plan, asked->list, topic->rungs != NULL, "list", error);
    return error->status;
}

/* An option that is not given means the default, "all" means every value. */
static void plan_lists(const struct ladder_settings *asked, bool all, struct ladder_plan *plan)
{
    static const allfold_type types[] = {ALLFOLD_INT32, ALLFOLD_F32, ALLFOLD_F64};
    static const allfold_fold folds[] = {ALLFOLD_SUM, ALLFOLD_MAX};
    const char *const type = asked->type != NULL ? asked->type : all ? "all" : "f32";
    const char *const fold = asked->fold != NULL ? asked->fold : all ? "all" : "sum";
    for (int i = 0; i < 3; i++)
        if (strcmp(type, "all") == 0 || strcmp(type, allfold_type_name(types[i])) == 0)
            plan->types[plan->type_count++] = types[i];
    for (int i = 0; i < 2; i++)
        if (strcmp(fold, "all") == 0 || strcmp(fold, allfold_fold_name(folds[i])) == 0)
            plan->folds[plan->fold_count++] = folds[i];
    const bool all_blocks = asked->block != NULL && strcmp(asked->block, "all") == 0;
    for (int block = 64; block <= 1024; block *= 2)
        if (all_blocks || block == atoi(asked->block != NULL ? asked->block : BLOCK_DEFAULT))
            plan->blocks[plan->block_count++] = block;
}

static allfold_status make_plan(const struct settings *settings, const struct ladder_machine *machine, struct ladder_plan *plan,
                                struct error *error)
{
    const struct ladder_settings *const asked = &settings->ladder;
    *plan = (struct ladder_plan){.machine = machine, .rung = -1};
    if (find_topic(settings->operand != NULL ? settings->operand : "", plan, error) != ALLFOLD_OK)
        return error->status;
    if (refuse_options(settings, plan, error) != ALLFOLD_OK)
        return error->status;
    if (asked->rung != NULL)
        find_rung(asked->rung, plan, error);
    plan_lists(asked, settings->check && (plan->topic->takes & LADDER_TAKES_TYPE) != 0, plan);
    if (plan->topic->shapes != NULL) {
        const char *const shapes = settings->check ? machine->check_shapes : plan->topic->shapes;
        return parse_shapes(asked->shapes != NULL ? asked->shapes : shapes, plan, error);
    }
    const char *const counts = settings->check ? machine->check_counts : plan->topic->counts;
    return parse_counts(asked->counts != NULL ? asked->counts : counts, plan, error);
}

/* What is done with each combination of what the user asked for. */
struct each {
    struct session *session;
    void (*work)(void *argument, const struct ladder_request *request);
    void *argument;
    int parts;
};

static void each_part(const struct each *each, struct ladder_request *request)
{
    for (request->part = 0; request->part < each->parts; request->part++)
        if (each->session->error.status == ALLFOLD_OK)
            each->work(each->argument, request);
}

static void each_count(const struct each *each, const struct counts *counts, struct ladder_request *request)
{
    for (uint64_t step = 0; step <= (counts->last - counts->first) / counts->step; step++) {
        request->count = counts->first + step * counts->step;
        each_part(each, request);
        if (each->session->error.status != ALLFOLD_OK)
            return;
    }
}

/* Calls work for every combination, until one fails. Every rank does the same. */
static void for_each(const struct ladder_plan *plan, struct session *session,
                     void (*work)(void *argument, const struct ladder_request *request), void *argument)
{
    const struct each each = {session, work, argument, plan->topic->parts};
    const int combinations = plan->type_count * plan->fold_count * plan->block_count;
    for (int i = 0; i < combinations; i++) {
        struct ladder_request request = {
            .type = plan->types[i / (plan->fold_count * plan->block_count)],
            .fold = plan->folds[i / plan->block_count % plan->fold_count],
            .block = plan->blocks[i % plan->block_count],
            .rung = plan->rung,
            .columns = session->settings->ladder.columns,
        };
        for (int range = 0; range < plan->count_count; range++)
            each_count(&each, &plan->counts[range], &request);
        for (int shape = 0; shape < plan->shape_count; shape++) {
            request.shape = plan->shapes[shape];
            request.count = request.shape.rows * request.shape.columns;
            each_part(&each, &request);
        }
    }
}

struct ladder_job {
    struct session *session;
    struct gpu *gpu;
    const struct ladder_plan *plan;
    struct ladder_report report;
    struct table checks; /* --check: one table for all */
};

static void run_table(void *argument, const struct ladder_request *request)
{
    struct ladder_job *const run = argument;
    struct table table = {0};
    run->plan->topic->run(run->gpu, request, &table, &run->session->error);
    ladder_report_table(&run->report, run->plan->topic, request, &table);
    table_free(&table);
}

static void run_check(void *argument, const struct ladder_request *request)
{
    struct ladder_job *const run = argument;
    run->plan->topic->check(run->gpu, request, &run->checks, &run->session->error);
}

static void run_all(struct ladder_job *run)
{
    struct session *const session = run->session;
    if (!session->settings->check) {
        for_each(run->plan, session, run_table, run);
        return;
    }
    run->checks = (struct table){0};
    for_each(run->plan, session, run_check, run);
    ladder_report_table(&run->report, run->plan->topic, NULL, &run->checks);
    table_free(&run->checks);
}

static void print_list(const struct session *session, const struct ladder_rung_list *rungs)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < rungs->count; i++) {
        struct json_object *object = json_object_new_object();
        if (!session->settings->json)
            printf("%-20s  %s\n", rungs->rungs[i].name, rungs->rungs[i].idea);
        json_object_object_add(object, "rung", json_object_new_string(rungs->rungs[i].name));
        json_object_object_add(object, "idea", json_object_new_string(rungs->rungs[i].idea));
        json_object_array_add(list, object);
    }
    if (session->settings->json) {
        struct json_object *report = json_object_new_object();
        json_object_object_add(report, "command", json_object_new_string(session->settings->command->name));
        json_object_object_add(report, "rungs", list);
        report_print(report);
    } else
        json_object_put(list);
}

void ladder_topics_print(FILE *file)
{
    fputs("TOPIC is one of\n", file);
    for (int i = 0; i < ladder_machine.topic_count; i++) {
        const struct ladder_topic *const topic = &ladder_machine.topics[i];
        fprintf(file, "  %-24s  %s\n", topic->name[0] != '\0' ? topic->name : "(none)", topic->text);
    }
}

/* Opens what runs the topic, on all ranks of one kind. */
static bool open_machine(struct ladder_job *run)
{
    struct session *const session = run->session;
    const struct ladder_machine *const machine = run->plan->machine;
    const int emulated = machine != &ladder_machine;
    if (!ladder_report_alike(session, &emulated, 1, "has a GPU and rank 0 has none, or the other way round"))
        return false;
    if (emulated && run->plan->topic->run == NULL)
        error_set(&session->error, ALLFOLD_UNSUPPORTED, "ladder %s measures times, and needs a CUDA device; docs/ladder.md has what an "
                  "H200 gives", run->plan->topic->name);
    else if (session->error.status == ALLFOLD_OK)
        machine->open(session_comm(session)->local_rank, &run->gpu, &session->error);
    return session_agree(session);
}

void ladder_command_run(struct session *session)
{
    struct ladder_plan plan;
    struct ladder_job run = {.session = session, .plan = &plan};
    struct error no_machine = {0};
    make_plan(session->settings, ladder_machine_find(session->settings->context.backend, &no_machine), &plan, &session->error);
    if (!session_agree(session))
        return;
    if (session->settings->ladder.list) {
        if (session_comm(session)->rank == 0)
            print_list(session, plan.topic->rungs);
        return;
    }
    session->error = no_machine;
    if (open_machine(&run)) {
        ladder_report_begin(session, plan.topic->name[0] != '\0' ? plan.topic->name : "rungs", plan.machine->device(run.gpu),
                            &run.report);
        if (session->error.status == ALLFOLD_OK)
            run_all(&run);
        ladder_report_end(&run.report);
    }
    plan.machine->close(run.gpu);
}
