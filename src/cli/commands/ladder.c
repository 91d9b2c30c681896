/* ladder: reduction kernels for learning, each checked and timed on every rank's own GPU, and experiments about them.
   kernels/ladder has them. This file runs those that the user asked for. */
#include "cli/commands/ladder_report.h"
#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/report.h"
#include "cli/suggest.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_MAX = 64 };
#define BLOCK_DEFAULT "256"

/* The lengths that --check runs without --count: every length up to two warps and more, lengths up to several levels of small
   blocks, and two of many levels. */
#define CHECK_COUNTS "0-70,71-4200:59,1048576,16777217"

/* Numbers first, first + step, ... last. */
struct counts {
    uint64_t first, last, step;
};

/* What the user asked for, as lists. Every combination is run. */
struct plan {
    const struct ladder_topic *topic;
    struct counts counts[RANGES_MAX];
    allfold_type types[3];
    allfold_fold folds[2];
    int blocks[5];
    int count_count, type_count, fold_count, block_count;
    int rung;
};

/* "1000", "2^24", "0-70" or "71-4200:59". */
static bool parse_range(const char *text, struct counts *counts)
{
    char copy[100];
    if (strlen(text) >= sizeof copy)
        return false;
    strcpy(copy, text);
    char *const dash = strchr(copy, '-'), *const colon = dash != NULL ? strchr(dash, ':') : NULL;
    if (dash != NULL)
        *dash = '\0';
    if (colon != NULL)
        *colon = '\0';
    counts->step = 1;
    if (!parse_count(copy, &counts->first))
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
static allfold_status parse_counts(const char *text, struct plan *plan, struct error *error)
{
    char copy[RANGES_MAX * 32];
    char *rest = copy, *item;
    bool right = strlen(text) < sizeof copy;
    snprintf(copy, sizeof copy, "%s", text);
    while (right && (item = strsep(&rest, ",")) != NULL)
        right = plan->count_count < RANGES_MAX && parse_range(item, &plan->counts[plan->count_count++]);
    if (right)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "ladder: --count: expected counts such as 2^24 or 1000,2^20 or 0-70 or 0-4200:7, found '%.100s'",
                     text);
}

static allfold_status find_topic(const char *name, struct plan *plan, struct error *error)
{
    const char *names[16];
    size_t count = 0;
    for (int i = 0; i < ladder_topic_count; i++) {
        if (strcmp(ladder_topics[i].name, name) == 0) {
            plan->topic = &ladder_topics[i];
            return ALLFOLD_OK;
        }
        if (count < sizeof names / sizeof *names)
            names[count++] = ladder_topics[i].name;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder: '%.100s' is no topic%s: see allfold ladder --help", name,
                     suggest(name, names, count, "").text);
}

static allfold_status find_rung(const char *name, struct plan *plan, struct error *error)
{
    const char *names[64];
    size_t count = 0;
    for (int i = 0; i < ladder_rung_count; i++) {
        if (strcmp(ladder_rungs[i].name, name) == 0) {
            plan->rung = i;
            return ALLFOLD_OK;
        }
        if (count < sizeof names / sizeof *names)
            names[count++] = ladder_rungs[i].name;
    }
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder: --rung: '%.100s' is no rung%s: see allfold ladder --list",
                     name, suggest(name, names, count, "").text);
}

/* Refuses an option that has no meaning for the topic. */
static void refuse(const struct plan *plan, bool given, unsigned takes, const char *name, struct error *error)
{
    if (given && (plan->topic->takes & takes) == 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "ladder %s takes no --%s", plan->topic->name, name);
}

/* An option that is not given means the default, "all" means every value. */
static void plan_lists(const struct ladder_settings *asked, bool check, struct plan *plan)
{
    static const allfold_type types[] = {ALLFOLD_INT32, ALLFOLD_F32, ALLFOLD_F64};
    static const allfold_fold folds[] = {ALLFOLD_SUM, ALLFOLD_MAX};
    const char *const type = asked->type != NULL ? asked->type : check ? "all" : "f32";
    const char *const fold = asked->fold != NULL ? asked->fold : check ? "all" : "sum";
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

static allfold_status make_plan(const struct settings *settings, struct plan *plan, struct error *error)
{
    const struct ladder_settings *const asked = &settings->ladder;
    *plan = (struct plan){.rung = -1};
    if (find_topic(settings->operand != NULL ? settings->operand : "", plan, error) != ALLFOLD_OK)
        return error->status;
    refuse(plan, asked->type != NULL, LADDER_TAKES_TYPE, "type", error);
    refuse(plan, asked->fold != NULL, LADDER_TAKES_FOLD, "fold", error);
    refuse(plan, asked->block != NULL, LADDER_TAKES_BLOCK, "block", error);
    refuse(plan, asked->rung != NULL, LADDER_TAKES_RUNG, "rung", error);
    refuse(plan, settings->check, LADDER_TAKES_RUNG, "check", error);
    refuse(plan, asked->columns != 0, LADDER_TAKES_COLUMNS, "columns", error);
    if (asked->rung != NULL)
        find_rung(asked->rung, plan, error);
    plan_lists(asked, settings->check, plan);
    const char *const counts = settings->check ? CHECK_COUNTS : plan->topic->counts;
    return parse_counts(asked->counts != NULL ? asked->counts : counts, plan, error);
}

/* Calls work for every combination, until one fails. Every rank does the same. */
static void for_each(const struct plan *plan, struct session *session,
                     void (*work)(void *argument, const struct ladder_request *request), void *argument)
{
    const int combinations = plan->type_count * plan->fold_count * plan->block_count;
    for (int i = 0; i < combinations; i++) {
        struct ladder_request request = {
            .type = plan->types[i / (plan->fold_count * plan->block_count)],
            .fold = plan->folds[i / plan->block_count % plan->fold_count],
            .block = plan->blocks[i % plan->block_count],
            .rung = plan->rung,
            .columns = session->settings->ladder.columns,
        };
        for (int range = 0; range < plan->count_count; range++) {
            const struct counts *const counts = &plan->counts[range];
            for (uint64_t step = 0; step <= (counts->last - counts->first) / counts->step; step++) {
                request.count = counts->first + step * counts->step;
                for (request.part = 0; request.part < plan->topic->parts; request.part++) {
                    if (session->error.status != ALLFOLD_OK)
                        return;
                    work(argument, &request);
                }
            }
        }
    }
}

struct run {
    struct session *session;
    struct gpu *ladder;
    const struct plan *plan;
    struct ladder_report report;
    struct ladder_table checks; /* --check: one table for all */
};

static void run_table(void *argument, const struct ladder_request *request)
{
    struct run *const run = argument;
    struct ladder_table table = {.correct = true, .compared = -1};
    run->plan->topic->run(run->ladder, request, &table, &run->session->error);
    ladder_report_table(&run->report, run->plan->topic, request, &table);
    ladder_table_free(&table);
}

static void run_check(void *argument, const struct ladder_request *request)
{
    struct run *const run = argument;
    ladder_check(run->ladder, request, &run->checks, &run->session->error);
}

static void run_all(struct run *run)
{
    struct session *const session = run->session;
    if (!session->settings->check) {
        for_each(run->plan, session, run_table, run);
        return;
    }
    run->checks = (struct ladder_table){.correct = true, .compared = -1};
    ladder_check_begin(run->plan->rung, &run->checks, &session->error);
    for_each(run->plan, session, run_check, run);
    ladder_report_table(&run->report, run->plan->topic, NULL, &run->checks);
    ladder_table_free(&run->checks);
}

static void print_list(const struct session *session)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < ladder_rung_count; i++) {
        struct json_object *object = json_object_new_object();
        if (!session->settings->json)
            printf("%-20s  %s\n", ladder_rungs[i].name, ladder_rungs[i].idea);
        json_object_object_add(object, "rung", json_object_new_string(ladder_rungs[i].name));
        json_object_object_add(object, "idea", json_object_new_string(ladder_rungs[i].idea));
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
    for (int i = 0; i < ladder_topic_count; i++)
        fprintf(file, "  %-24s  %s\n", ladder_topics[i].name[0] != '\0' ? ladder_topics[i].name : "(none)",
                ladder_topics[i].text);
}

void ladder_command_run(struct session *session)
{
    struct plan plan;
    struct run run = {.session = session, .plan = &plan};
    make_plan(session->settings, &plan, &session->error);
    if (!session_agree(session))
        return;
    if (session->settings->ladder.list) {
        if (session_comm(session)->rank == 0)
            print_list(session);
        return;
    }
    gpu_open(session_comm(session)->local_rank, &run.ladder, &session->error);
    if (session_agree(session)) {
        ladder_report_begin(session, plan.topic->name[0] != '\0' ? plan.topic->name : "rungs",
                            gpu_device_of(run.ladder), &run.report);
        if (session->error.status == ALLFOLD_OK)
            run_all(&run);
        ladder_report_end(&run.report);
    }
    gpu_close(run.ladder);
}
