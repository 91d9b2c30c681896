/* Runs folds of several arrays: `norm2 'model.safetensors:*'` gives the value of each, and with --total one value, as of all joined. */
#include "cli/commands/fold.h"
#include "cli/commands/list.h"

#include "cli/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* On rank 0 the arrays and their results; on the others their number. */
struct many {
    struct session *session;
    struct input_list list;
    struct report_item *items;
    uint64_t count;
};

/* --total makes one value of arrays of one type. */
static void check_types(const struct many *m, struct error *error)
{
    const struct array_info *const arrays = m->list.arrays;
    char name[ARRAY_NAME_BYTES];
    for (uint64_t i = 1; i < m->list.count && m->session->settings->total; i++)
        if (arrays[i].type != arrays[0].type)
            error_set(error, ALLFOLD_BAD_INPUT, "%s: expected arrays of one type for --total, %s so far, found %s",
                      file_shown(array_name(&arrays[i], name)), allfold_type_name(arrays[0].type), allfold_type_name(arrays[i].type));
}

/* Rank 0: describes all. */
static void list_arrays(struct many *m)
{
    const struct settings *const settings = m->session->settings;
    struct error *const error = &m->session->error;
    if (input_list_read(&m->list, settings->operands, settings->operand_count, &settings->hints, error) == ALLFOLD_OK)
        check_types(m, error);
    m->count = m->list.count;
    if (m->count == 0)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected arrays of numbers, found none", file_shown(settings->operand));
    else if ((m->items = calloc(m->count, sizeof *m->items)) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " results", m->count);
}

/* The session's input becomes number i. Collective. */
static void share_input(struct many *m, uint64_t i)
{
    input_list_share(m->session, session_comm(m->session)->rank == 0 ? &m->list.arrays[i] : NULL);
}

/* Puts the array's name before the text of an error that all ranks have. */
static void name_error(struct session *session)
{
    const struct error own = session->error;
    char name[ARRAY_NAME_BYTES];
    session->error = (struct error){.status = ALLFOLD_OK};
    error_within(&session->error, &own, "%s", file_shown(array_name(&session->input, name)));
    session->error.shared = own.shared;
}

static void fold_each(struct many *m)
{
    struct session *const session = m->session;
    struct total total;
    struct fold_results result;
    for (uint64_t i = 0; i < m->count && session->error.status == ALLFOLD_OK; i++) {
        share_input(m, i);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input(session, &total);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input_result(session, &total, &result);
        if (session->error.status != ALLFOLD_OK)
            name_error(session);
        else if (session_comm(session)->rank == 0)
            m->items[i] = (struct report_item){&m->list.arrays[i], session->missing, result};
    }
}

static void run_each(struct many *m)
{
    struct session *const session = m->session;
    fold_each(m);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_each(session, &(struct report_items){m->items, m->count, m->list.files == 1}, seconds);
}

/* Folds the arrays one after the other, and puts their partials together. */
static void fold_total(struct many *m, struct total *all)
{
    struct session *const session = m->session;
    struct total next;
    for (uint64_t i = 0; i < m->count && session->error.status == ALLFOLD_OK; i++) {
        share_input(m, i);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input(session, &next);
        if (session->error.status != ALLFOLD_OK)
            return;
        session->error.shared = total_append(all, &next, &session->error) != ALLFOLD_OK;
        if (session->error.shared)
            name_error(session);
    }
}

/* The input that the report names. */
static void describe_total(struct session *session, const struct total *all)
{
    const struct settings *const settings = session->settings;
    struct array_info *const input = &session->input;
    const enum missing missing = (enum missing)input->missing;
    array_release(input);
    memset(input, 0, sizeof *input);
    input->type = all->type;
    input->count = all->length;
    input->missing = missing;
    session->missing = all->length - all->count;
    if (settings->operand_count == 1)
        snprintf(input->path, sizeof input->path, "%s", settings->operand);
    else
        snprintf(input->path, sizeof input->path, "%.*s and %d more", (int)sizeof input->path - 32, settings->operand, settings->operand_count - 1);
}

static void run_total(struct many *m)
{
    struct session *const session = m->session;
    struct total all = {.type = ALLFOLD_TYPE_NONE};
    struct fold_results result;
    fold_total(m, &all);
    if (session->error.status == ALLFOLD_OK)
        describe_total(session, &all);
    fold_input_result(session, &all, &result);
    const double seconds = session_seconds(session);
    session_phases(session);
    session_partial_end(session, &all);
    if (session->error.status != ALLFOLD_OK || session_comm(session)->rank != 0)
        return;
    report_fold(session, &result, seconds);
}

/* Refuses options that do not go together. The same on all ranks. */
static allfold_status check(const struct settings *settings, struct error *error)
{
    const char *const command = settings->command->name;
    const struct array_hints *const hints = &settings->hints;
    if (settings->checkpoint != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --checkpoint keeps the fold of one array: expected no pattern of names and no --total "
                  "beside it", command);
    else if (settings->partial != NULL && !settings->total)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --partial keeps one partial: expected --total beside a pattern of names", command);
    else if (hints->has_offset || hints->has_count || hints->shape != NULL || hints->slice != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --%s, which is for one array, beside a pattern of names or --total", command,
                  hints->has_offset ? "offset" : hints->has_count ? "count" : hints->shape != NULL ? "shape" : "slice");
    error->shared = error->status != ALLFOLD_OK;
    return error->status;
}

void fold_many_run(struct session *session)
{
    struct many m = {.session = session};
    session_begin_input(session);
    if (session->error.status != ALLFOLD_OK || check(session->settings, &session->error) != ALLFOLD_OK)
        return;
    if (session_comm(session)->rank == 0)
        list_arrays(&m);
    comm_broadcast(session_comm(session), 0, &m.count, sizeof m.count, &session->error);
    if (session->error.status == ALLFOLD_OK && session->settings->total)
        session_partial_begin(session);
    if (session->error.status == ALLFOLD_OK && session->settings->total)
        run_total(&m);
    else if (session->error.status == ALLFOLD_OK)
        run_each(&m);
    input_list_free(&m.list);
    free(m.items);
}
