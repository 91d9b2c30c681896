/* Log-probabilities and their gradient: folds along an axis with a number of each row beside. The calls are in api_log_probs.c. */
#include "core/view.h"

#include "core/pipeline.h"
#include "fold/targets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of rows */

static uint64_t rows_of(const struct pieces *p) { return p->part.outer * p->part.inner; }

allfold_status row_array_open(const struct pieces *p, struct row_array *rows, struct error *error)
{
    const size_t bytes = rows_of(p) * sizeof(uint64_t);
    struct device_data data = {0};
    if (rows->memory == NULL || error->status != ALLFOLD_OK || locate_memory(p->ctx, rows->memory, rows_of(p), &data, error) != ALLFOLD_OK)
        return error->status;
    rows->there = data.memory != NULL;
    if (p->in_place || !rows->there)
        return ALLFOLD_OK;
    if ((rows->copy = malloc(bytes + 1)) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the numbers of %" PRIu64 " rows", rows_of(p));
    return in_place_download(p->ctx, p->stream, rows->memory, rows->copy, bytes, error);
}

void row_array_close(struct row_array *rows)
{
    free(rows->copy);
    rows->copy = NULL;
}

/* ---- targets */

allfold_status targets_open(struct pieces *p, struct error *error)
{
    const bool has_elements = part_elements(&p->part) > 0;
    if (p->targets.of.memory != NULL && p->array->in_place && !p->in_place && has_elements && error->status == ALLFOLD_OK)
        return error_set(error, ALLFOLD_UNSUPPORTED, "the logits lie in device memory, those of another rank do not: expected one kind of memory on "
                         "all ranks that share out the axis");
    return row_array_open(p, &p->targets.of, error);
}

void targets_close(struct pieces *p) { row_array_close(&p->targets.of); }

/* ---- the gradient */

struct gradient {
    struct view view;
    const struct gradient_input *input;
    struct row_array logsumexp, scale;
    uint32_t refused; /* by the host */
};

/* Names the first row whose target is out of range. */
static allfold_status refuse_target(const struct pieces *p, struct error *error)
{
    const uint64_t rows = rows_of(p), whole = p->array->length;
    struct row_array of = p->targets.of;
    int64_t *copy = NULL;
    if (of.there && p->ctx->device->backend->own_memory && of.copy == NULL) {
        if ((copy = malloc(rows * sizeof *copy + 1)) == NULL
            || in_place_download(p->ctx, p->stream, of.memory, copy, rows * sizeof *copy, error) != ALLFOLD_OK)
            of.memory = NULL;
        of.copy = copy;
    }
    const int64_t *const targets = row_array_here(&of);
    for (uint64_t r = 0; targets != NULL && r < rows; r++)
        if (targets[r] != p->targets.ignore && (targets[r] < 0 || (uint64_t)targets[r] >= whole)) {
            error_set(error, ALLFOLD_BAD_ARGUMENT, "row %" PRIu64 " of this rank: target %" PRId64 " is no index along the axis: expected 0 to %" PRIu64
                      ", or %" PRId64 ", which is ignored", r, targets[r], whole - 1, p->targets.ignore);
            break;
        }
    free(copy);
    return error->status;
}

/* y of a part, with the strides of x. */
static struct gradient_work gradient_of(const struct gradient *g, const struct part *part)
{
    const struct axis_array *const array = &g->view.array;
    const struct sink *const sink = g->input->sink;
    const uint64_t at = pieces_position(&g->view.p, part, 0, 0);
    const struct softmax_work softmax
        = {.x = (const char *)array->memory + at * allfold_type_bytes(array->type), .y = (char *)sink->memory + at * allfold_type_bytes(sink->type),
           .x_type = array->type, .y_type = sink->type,
           .box = {part->outer, part->length, part->inner, array->outer_stride, array->axis_stride}, .y_outer_stride = array->outer_stride,
           .y_axis_stride = array->axis_stride, .level = g->view.p.ctx->level};
    return (struct gradient_work){.softmax = softmax, .first = part->l};
}

enum { GRADIENT_ROWS = IN_PLACE_BYTES / 128 }; /* their constants, and three numbers of each, fit the context's memory */
_Static_assert(GRADIENT_ROWS * sizeof(struct softmax_constants) <= IN_PLACE_BYTES, "room for constants");

static void gradient_unit(struct gradient *g, uint64_t unit, struct error *error)
{
    const struct pieces *const p = &g->view.p;
    const struct backend *const backend = p->ctx->device->backend;
    struct queue *const queue = in_place_queue(p->ctx);
    const struct batch batch = in_place_batch(p, unit);
    const size_t each = GRADIENT_ROWS * sizeof(uint64_t);
    struct gradient_work work = gradient_of(g, &batch.part);
    uint32_t *const refused = backend->own_memory ? (uint32_t *)(void *)((char *)queue->staging + IN_PLACE_BYTES - sizeof *refused) : &g->refused;
    work.targets = (struct axis_targets){row_array_there(p, &p->targets.of, batch.results, 0, error), p->targets.ignore, p->array->length};
    work.logsumexp = row_array_there(p, &g->logsumexp, batch.results, each, error);
    work.scale = row_array_there(p, &g->scale, batch.results, 2 * each, error);
    work.constants = in_place_constants(p);
    work.refused = refused;
    *refused = 0;
    phase_enter(p->ctx->comm.progress, PHASE_NORMALISE);
    if (error->status == ALLFOLD_OK && backend->gradient_axis(queue, &work, error) == ALLFOLD_OK && backend->wait(queue, error) == ALLFOLD_OK
        && __atomic_load_n(refused, __ATOMIC_ACQUIRE) != 0)
        refuse_target(p, error);
}

/* Of host memory, by way of a device that has its own. */
static void gradient_streamed(struct gradient *g, struct error *error)
{
    struct pieces *const p = &g->view.p;
    const uint64_t rows = rows_of(p);
    const struct softmax_output output = {.sink = g->input->sink, .type = g->input->sink->type, .scaled = true};
    struct softmax_constants *const constants = malloc(rows * sizeof *constants + 1);
    struct gradient_work work = gradient_of(g, &p->part);
    work.targets = (struct axis_targets){row_array_here(&p->targets.of), p->targets.ignore, p->array->length};
    work.logsumexp = row_array_here(&g->logsumexp);
    work.scale = row_array_here(&g->scale);
    work.constants = constants;
    work.refused = &g->refused;
    if (constants == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", rows);
    for (uint64_t r = 0; r < rows && error->status == ALLFOLD_OK; r++)
        gradient_begin(&work, r);
    if (error->status == ALLFOLD_OK && g->refused != 0)
        refuse_target(p, error);
    if (error->status == ALLFOLD_OK && pieces_normalise(p, &output, constants, error) == ALLFOLD_OK && work.targets.of != NULL)
        for (uint64_t r = 0; r < rows; r++)
            gradient_end(&work, r, 0, 1);
    free(constants);
}

static void gradient_part(struct gradient *g, struct error *error)
{
    struct view *const view = &g->view;
    struct pieces *const p = &view->p;
    const bool own_memory = p->ctx->device->backend->own_memory;
    if (own_memory && part_elements(&p->part) > 0 && error->status == ALLFOLD_OK && view->array.in_place != view->y_in_place)
        error_set(error, ALLFOLD_UNSUPPORTED, "one of logits and gradient lies in device memory, the other does not: expected one kind of memory");
    targets_open(p, error);
    row_array_open(p, &g->logsumexp, error);
    row_array_open(p, &g->scale, error);
    if (error->status != ALLFOLD_OK || part_elements(&p->part) == 0)
        return;
    progress_expect(p->ctx->comm.progress, part_elements(&p->part) * allfold_type_bytes(p->array->type));
    if (!p->in_place) {
        gradient_streamed(g, error);
        return;
    }
    pieces_cut_in_place(p, GRADIENT_ROWS);
    for (uint64_t unit = 0; unit < p->units && error->status == ALLFOLD_OK; unit++)
        gradient_unit(g, unit, error);
}

allfold_status core_log_probs_gradient(struct allfold_context *ctx, const struct axis_input *input, const struct gradient_input *gradient,
                                       struct error *error)
{
    const enum monoid monoid = softmax_monoid(input->type, gradient->sink->type, false, ALLFOLD_LEVEL_FAST);
    struct gradient g = {.view = {.input = input, .y = gradient->sink->memory, .by_host = true, .p = {.ctx = ctx, .monoid = monoid, .targets = input->targets}},
                         .input = gradient, .logsumexp = {.memory = gradient->logsumexp}, .scale = {.memory = gradient->scale}};
    if (view_begin(&g.view, error) == ALLFOLD_OK)
        gradient_part(&g, error);
    targets_close(&g.view.p);
    row_array_close(&g.logsumexp);
    row_array_close(&g.scale);
    view_end(&g.view, error);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
