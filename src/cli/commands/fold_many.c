/* Runs folds of several arrays: `norm2 'model.safetensors:*'` gives the value of each, and with --total one value, as of all joined. */
#include "cli/commands/fold.h"

#include "cli/report.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* On rank 0 the arrays and their results; on the others their number. */
struct many {
    struct session *session;
    struct report_items all;
    uint64_t capacity;
};

/* Of which --total makes no one value. */
static bool is_of_other_type(const struct many *m, const struct array_info *input)
{
    char name[ARRAY_NAME_BYTES];
    if (!m->session->settings->total || m->all.count == 0 || input->type == m->all.items[0].input.type)
        return false;
    error_set(&m->session->error, ALLFOLD_BAD_INPUT, "%s: expected arrays of one type for --total, %s so far, found %s",
              file_shown(array_name(input, name)), allfold_type_name(m->all.items[0].input.type), allfold_type_name(input->type));
    return true;
}

static void take(void *user, struct array_entry *entry)
{
    struct many *const m = user;
    if (array_entry_is_strange(entry)) {
        report_left_out(entry);
        return;
    }
    if (is_of_other_type(m, &entry->info))
        return;
    if (m->all.count == m->capacity) {
        const uint64_t capacity = 2 * m->capacity + 16;
        struct report_item *const larger = realloc(m->all.items, capacity * sizeof *larger);
        if (larger == NULL) {
            error_set(&m->session->error, ALLFOLD_NO_MEMORY, "no memory to describe %" PRIu64 " arrays", capacity);
            return;
        }
        m->all.items = larger;
        m->capacity = capacity;
    }
    memcpy(&m->all.items[m->all.count++].input, &entry->info, sizeof entry->info);
    entry->info.details = NULL;
}

/* Rank 0: describes all. */
static void list_arrays(struct many *m)
{
    const struct settings *const settings = m->session->settings;
    struct error *const error = &m->session->error;
    uint64_t files;
    array_describe_each(settings->operands, settings->operand_count, &settings->hints, take, m, &files, error);
    m->all.one_file = files == 1;
    if (m->all.count == 0)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected arrays of numbers, found none", file_shown(settings->operand));
}

/* The session's input becomes number i. Collective. */
static void share_input(struct many *m, uint64_t i)
{
    struct array_info *const input = &m->session->input;
    if (session_comm(m->session)->rank == 0) {
        array_release(input);
        memcpy(input, &m->all.items[i].input, sizeof *input);
        m->all.items[i].input.details = NULL; /* the session's now */
    }
    session_share_input(m->session);
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
    struct partial_file partial;
    struct fold_results result;
    for (uint64_t i = 0; i < m->all.count && session->error.status == ALLFOLD_OK; i++) {
        share_input(m, i);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input(session, &partial);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input_result(session, &partial, &result);
        if (session->error.status != ALLFOLD_OK)
            name_error(session);
        else if (session_comm(session)->rank == 0) {
            m->all.items[i].result = result;
            m->all.items[i].missing = session->missing;
        }
    }
}

static void run_each(struct many *m)
{
    struct session *const session = m->session;
    fold_each(m);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_each(session, &m->all, seconds);
}

/* Folds the arrays one after the other, and puts their partials together. */
static void fold_total(struct many *m, struct partial_file *all)
{
    struct session *const session = m->session;
    struct partial_file next;
    char name[ARRAY_NAME_BYTES];
    for (uint64_t i = 0; i < m->all.count && session->error.status == ALLFOLD_OK; i++) {
        share_input(m, i);
        if (session->error.status != ALLFOLD_OK)
            return;
        fold_input(session, i == 0 ? all : &next);
        if (i == 0 || session->error.status != ALLFOLD_OK)
            continue;
        session->error.shared = partial_file_merge(all, &next, file_shown(array_name(&session->input, name)), &session->error) != ALLFOLD_OK;
    }
}

/* The input that the report names. */
static void describe_total(struct session *session, const struct partial_file *all)
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
    struct partial_file all;
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
    comm_broadcast(session_comm(session), 0, &m.all.count, sizeof m.all.count, &session->error);
    if (session->error.status == ALLFOLD_OK && session->settings->total)
        session_partial_begin(session);
    if (session->error.status == ALLFOLD_OK && session->settings->total)
        run_total(&m);
    else if (session->error.status == ALLFOLD_OK)
        run_each(&m);
    for (uint64_t i = 0; m.all.items != NULL && i < m.all.count; i++)
        array_release(&m.all.items[i].input);
    free(m.all.items);
}
