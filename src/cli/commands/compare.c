/* Runs the command compare: two arrays, or the arrays of two patterns of names, pair by pair. */
#include "cli/commands/compare.h"

#include "cli/commands/commands.h"
#include "cli/report.h"
#include "files/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rank 0: which arrays there are */

static void list_arrays(struct session *session, int which, bool several, struct input_list *list)
{
    const struct settings *const settings = session->settings;
    const char *const *const name = settings->operands + which;
    if (several)
        input_list_read(list, name, 1, &settings->hints, &session->error);
    else if ((list->arrays = calloc(1, sizeof *list->arrays)) == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory to describe an array");
    else if (array_describe_all(name, 1, &settings->hints, list->arrays, &session->error) == ALLFOLD_OK)
        list->count = 1;
}

/* The array of that name among those that have no pair yet, or NULL. Alone, an array has any name. */
static struct array_info *find_pair(const struct array_info *a, const struct input_list *of_b, const bool *paired, bool several)
{
    for (uint64_t i = 0; i < of_b->count; i++)
        if (!paired[i] && (!several || strcmp(a->member, of_b->arrays[i].member) == 0))
            return &of_b->arrays[i];
    return NULL;
}

/* Why two arrays cannot be compared. */
static allfold_status check_pair(const struct array_info *a, const struct array_info *b, struct error *error)
{
    char name[ARRAY_NAME_BYTES], shape[2][200];
    array_name(b, name);
    for (int i = 0; i < 2; i++)
        array_shape_text((i == 0 ? a : b)->shape, (i == 0 ? a : b)->dimensions, shape[i], sizeof shape[i]);
    if (a->dimensions != b->dimensions || memcmp(a->shape, b->shape, a->dimensions * sizeof *a->shape) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected the shape of the first array, %.80s, found %.80s", file_shown(name), shape[0],
                         shape[1]);
    if (a->dimensions > 1 && a->fortran_order != b->fortran_order)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected elements in the order of the first array's, %s, found the other order: save one "
                         "of them again", file_shown(name), a->fortran_order ? "Fortran's" : "C's");
    if (compare_type(a->type, b->type) == ALLFOLD_TYPE_NONE)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: expected %s elements to compare with %s, found %s", file_shown(name),
                         type_kind(a->type) == 'f' ? "floating-point" : "integer", allfold_type_name(a->type), allfold_type_name(b->type));
    return ALLFOLD_OK;
}

/* Makes pairs of what was listed. */
static allfold_status pair_arrays(struct compare_items *all, struct error *error)
{
    const struct input_list *const of = all->of;
    bool *const paired = calloc(of[0].count + of[1].count + 1, sizeof *paired), *const is_paired[2] = {paired, paired != NULL ? paired + of[0].count : NULL};
    all->items = calloc(of[0].count + of[1].count + 1, sizeof *all->items);
    if (paired == NULL || all->items == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " pairs of arrays", of[0].count);
    for (uint64_t i = 0; i < of[0].count && error->status == ALLFOLD_OK; i++) {
        struct array_info *const a = &of[0].arrays[i], *const b = find_pair(a, &of[1], is_paired[1], all->several);
        struct compare_item *const item = &all->items[all->count];
        if (b == NULL)
            continue;
        *item = (struct compare_item){.a = a, .b = b};
        check_pair(a, b, &item->refused);
        is_paired[0][i] = is_paired[1][b - of[1].arrays] = true;
        all->count++;
    }
    for (int side = 0; side < 2 && error->status == ALLFOLD_OK; side++)
        for (uint64_t i = 0; i < of[side].count; i++)
            if (!is_paired[side][i]) {
                struct compare_item *const item = &all->items[all->count++];
                *(side == 0 ? &item->a : &item->b) = &of[side].arrays[i];
            }
    free(paired);
    return error->status;
}

static void list_pairs(struct session *session, struct compare_items *all)
{
    const struct settings *const settings = session->settings;
    struct error *const error = &session->error;
    const bool several[2] = {array_names_several(settings->operands, 1), array_names_several(settings->operands + 1, 1)};
    all->several = several[0];
    if (several[0] != several[1])
        error_set(error, ALLFOLD_BAD_ARGUMENT, "compare: expected a pattern of names in both inputs or in none, found one in %s alone",
                  file_shown(settings->operands[several[0] ? 0 : 1]));
    for (int i = 0; i < 2 && error->status == ALLFOLD_OK; i++)
        list_arrays(session, i, several[i], &all->of[i]);
    if (error->status == ALLFOLD_OK && pair_arrays(all, error) == ALLFOLD_OK && !all->several)
        error_within(error, &all->items[0].refused, "%s", "compare");
    if (error->status == ALLFOLD_OK && all->count == 0)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected arrays of numbers, found none", file_shown(settings->operand));
}

/* ---- one pair */

/* Both arrays, on every rank. */
struct opened {
    struct array_info *b;
    struct compare_input input;
};

static void open_pair(struct session *session, struct opened *opened)
{
    const struct compare_settings *const settings = &session->settings->compare;
    struct compare_input *const input = &opened->input;
    struct job job;
    session_source(session, &job);
    *input = (struct compare_input){.a = job.source, .a_type = session->input.type, .b_type = opened->b->type, .count = session->input.count,
                                    .range = session->range, .atol = settings->atol, .rtol = settings->rtol, .equal_nan = settings->equal_nan};
    describe_open(opened->b, session_comm(session)->rank == 0, &input->b, &session->error);
}

/* The places of --first. */
static void list_places(struct session *session, const struct opened *opened, struct compare_item *item)
{
    const uint64_t most = (uint64_t)session->settings->compare.first;
    const bool root = session_comm(session)->rank == 0;
    struct compare_place *const list = root ? calloc(most, sizeof *list) : NULL;
    uint64_t count = 0;
    if (root && list == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory to list places");
    core_compare_list(session->context, &opened->input, most, list, &count, &session->error);
    item->places = list;
    item->place_count = count;
}

static void compare_pair(struct session *session, struct compare_item *item)
{
    struct opened opened = {.b = item->b};
    open_pair(session, &opened);
    if (core_compare(session->context, &opened.input, &item->found, &session->error) == ALLFOLD_OK && session->settings->compare.first > 0
        && item->found.outside > 0)
        list_places(session, &opened, item);
    source_close(opened.input.a);
    source_close(opened.input.b);
    session->outside = session->outside || (session->error.status == ALLFOLD_OK && item->found.outside > 0);
}

/* Gives every rank the description of a pair, compares it, and keeps on rank 0 what was found. */
static void share_and_compare(struct session *session, struct compare_item *of_root)
{
    struct array_info b = {.details = NULL};
    struct compare_item other = {.b = &b}, *const item = of_root != NULL ? of_root : &other;
    input_list_share(session, item->a);
    if (session->error.status == ALLFOLD_OK)
        session_share(session, item->b);
    if (session->error.status == ALLFOLD_OK)
        compare_pair(session, item);
    array_release(&b);
}

/* ---- all pairs */

/* Those that can be compared. */
static void compare_all(struct session *session, struct compare_items *all)
{
    struct comm *const comm = session_comm(session);
    for (uint64_t i = 0; i < all->count && session->error.status == ALLFOLD_OK; i++) {
        struct compare_item *const item = comm->rank == 0 ? &all->items[i] : NULL;
        bool left_out = item != NULL && (item->a == NULL || item->b == NULL || item->refused.status != ALLFOLD_OK);
        if (comm_broadcast(comm, 0, &left_out, sizeof left_out, &session->error) == ALLFOLD_OK && !left_out)
            share_and_compare(session, item);
        session->outside = session->outside || left_out;
    }
}

static void release(struct compare_items *all)
{
    for (uint64_t i = 0; all->items != NULL && i < all->count; i++)
        free(all->items[i].places);
    free(all->items);
    input_list_free(&all->of[0]);
    input_list_free(&all->of[1]);
}

void compare_run(struct session *session)
{
    struct comm *const comm = session_comm(session);
    struct compare_items all = {.count = 0};
    session_begin_input(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (comm->rank == 0)
        list_pairs(session, &all);
    comm_broadcast(comm, 0, &all.count, sizeof all.count, &session->error);
    compare_all(session, &all);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && comm->rank == 0)
        compare_report(session, &all, seconds);
    release(&all);
}
