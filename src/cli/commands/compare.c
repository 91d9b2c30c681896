/* Runs the command compare: two arrays, or the arrays of two patterns of names, pair by pair. */
#include "cli/commands/compare.h"

#include "cli/commands/commands.h"
#include "cli/report.h"
#include "files/describe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- rank 0: which arrays there are */

/* Arrays of one operand. */
struct listed {
    struct array_info *arrays;
    uint64_t count, capacity;
    struct error *error;
};

static void take(void *user, struct array_entry *entry)
{
    struct listed *const l = user;
    if (array_entry_is_strange(entry)) {
        report_left_out(entry);
        return;
    }
    if (l->count == l->capacity) {
        const uint64_t capacity = 2 * l->capacity + 16;
        struct array_info *const larger = realloc(l->arrays, capacity * sizeof *larger);
        if (larger == NULL) {
            error_set(l->error, ALLFOLD_NO_MEMORY, "no memory to describe %" PRIu64 " arrays", capacity);
            return;
        }
        l->arrays = larger;
        l->capacity = capacity;
    }
    memcpy(&l->arrays[l->count++], &entry->info, sizeof entry->info);
    entry->info.details = NULL;
}

static void list_arrays(struct session *session, int which, bool several, struct listed *listed)
{
    const struct settings *const settings = session->settings;
    const char *const *const name = settings->operands + which;
    uint64_t files;
    listed->error = &session->error;
    if (several) {
        array_describe_each(name, 1, &settings->hints, take, listed, &files, &session->error);
        return;
    }
    listed->arrays = calloc(1, sizeof *listed->arrays);
    if (listed->arrays == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory to describe an array");
    else if (array_describe_all(name, 1, &settings->hints, listed->arrays, &session->error) == ALLFOLD_OK)
        listed->count = 1;
}

/* The array of that name among those that have no pair yet, or NULL. Alone, an array has any name. */
static struct array_info *find_pair(const struct array_info *a, const struct listed *of_b, const bool *paired, bool several)
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

static void add_pair(struct compare_items *all, const struct array_info *a, const struct array_info *b)
{
    struct compare_item *const item = &all->items[all->count++];
    memset(item, 0, sizeof *item);
    memcpy(&item->a, a, sizeof *a);
    memcpy(&item->b, b, sizeof *b);
    check_pair(a, b, &item->refused);
}

/* Makes pairs of what was listed, which passes to *all. */
static allfold_status pair_arrays(struct compare_items *all, const struct listed of[2], struct error *error)
{
    bool *const paired = calloc(of[1].count + 1, sizeof *paired);
    all->items = calloc(of[0].count + 1, sizeof *all->items);
    for (int i = 0; i < 2; i++)
        all->only[i] = calloc(of[i].count + 1, sizeof *all->only[i]);
    if (paired == NULL || all->items == NULL || all->only[0] == NULL || all->only[1] == NULL) {
        free(paired);
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " pairs of arrays", of[0].count);
    }
    for (uint64_t i = 0; i < of[0].count; i++) {
        const struct array_info *const a = &of[0].arrays[i], *const b = find_pair(a, &of[1], paired, all->several);
        if (b == NULL) {
            memcpy(&all->only[0][all->only_count[0]++], a, sizeof *a);
        } else {
            paired[b - of[1].arrays] = true;
            add_pair(all, a, b);
        }
    }
    for (uint64_t i = 0; i < of[1].count; i++)
        if (!paired[i])
            memcpy(&all->only[1][all->only_count[1]++], &of[1].arrays[i], sizeof *of[1].arrays);
    free(paired);
    return ALLFOLD_OK;
}

static void list_pairs(struct session *session, struct compare_items *all)
{
    const struct settings *const settings = session->settings;
    struct error *const error = &session->error;
    const bool several[2] = {array_names_several(settings->operands, 1), array_names_several(settings->operands + 1, 1)};
    struct listed of[2] = {{0}, {0}};
    all->several = several[0];
    if (several[0] != several[1])
        error_set(error, ALLFOLD_BAD_ARGUMENT, "compare: expected a pattern of names in both inputs or in none, found one in %s alone",
                  file_shown(settings->operands[several[0] ? 0 : 1]));
    for (int i = 0; i < 2 && error->status == ALLFOLD_OK; i++)
        list_arrays(session, i, several[i], &of[i]);
    if (error->status == ALLFOLD_OK && pair_arrays(all, of, error) == ALLFOLD_OK && !all->several)
        error_within(error, &all->items[0].refused, "%s", "compare");
    if (error->status == ALLFOLD_OK && of[0].count + of[1].count == 0)
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected arrays of numbers, found none", file_shown(settings->operand));
    for (int i = 0; i < 2; i++)
        free(of[i].arrays);
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
    struct opened opened = {.b = &item->b};
    open_pair(session, &opened);
    if (core_compare(session->context, &opened.input, &item->found, &session->error) == ALLFOLD_OK && session->settings->compare.first > 0
        && item->found.outside > 0)
        list_places(session, &opened, item);
    source_close(opened.input.a);
    source_close(opened.input.b);
    session->outside = session->outside || (session->error.status == ALLFOLD_OK && item->found.outside > 0);
}

/* Gives every rank the description of pair i, compares it, and keeps on rank 0 what was found. */
static void share_and_compare(struct session *session, struct compare_items *all, uint64_t i)
{
    const bool root = session_comm(session)->rank == 0;
    struct compare_item none = {.place_count = 0}, *const item = root ? &all->items[i] : &none;
    struct array_info *const input = &session->input;
    if (root) {
        array_release(input);
        memcpy(input, &item->a, sizeof *input);
        item->a.details = NULL; /* the session's now */
    }
    session_share_input(session);
    if (session->error.status == ALLFOLD_OK)
        session_share(session, &item->b);
    if (session->error.status == ALLFOLD_OK)
        compare_pair(session, item);
    if (!root)
        array_release(&none.b);
}

/* ---- all pairs */

static void compare_all(struct session *session, struct compare_items *all)
{
    struct comm *const comm = session_comm(session);
    for (uint64_t i = 0; i < all->count && session->error.status == ALLFOLD_OK; i++) {
        bool refused = comm->rank == 0 && all->items[i].refused.status != ALLFOLD_OK;
        if (comm_broadcast(comm, 0, &refused, sizeof refused, &session->error) == ALLFOLD_OK && !refused)
            share_and_compare(session, all, i);
        session->outside = session->outside || refused;
    }
}

static void release(struct compare_items *all)
{
    for (uint64_t i = 0; all->items != NULL && i < all->count; i++) {
        array_release(&all->items[i].a);
        array_release(&all->items[i].b);
        free(all->items[i].places);
    }
    for (int side = 0; side < 2; side++) {
        for (uint64_t i = 0; all->only[side] != NULL && i < all->only_count[side]; i++)
            array_release(&all->only[side][i]);
        free(all->only[side]);
    }
    free(all->items);
}

void compare_run(struct session *session)
{
    struct comm *const comm = session_comm(session);
    struct compare_items all = {.count = 0};
    uint64_t counts[2];
    session_begin_input(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (comm->rank == 0)
        list_pairs(session, &all);
    counts[0] = all.count;
    counts[1] = all.only_count[0] + all.only_count[1];
    comm_broadcast(comm, 0, counts, sizeof counts, &session->error);
    if (comm->rank != 0)
        all.count = counts[0];
    session->outside = counts[1] > 0;
    compare_all(session, &all);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && comm->rank == 0)
        compare_report(session, &all, seconds);
    release(&all);
}
