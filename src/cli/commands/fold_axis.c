/* Runs folds along an axis: `sum --axis=1 x.npy -o s.npy`. Results go to one file, of argmin and argmax also to a second, or
   are printed. */
#include "cli/commands/fold_axis.h"

#include "cli/report.h"
#include "cli/weights.h"
#include "cli/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_netcdf(const char *path) { return path != NULL && file_name_ends(path, ".nc"); }
/* Whether such a file has several arrays. */
static bool is_of_several(const char *path) { return is_netcdf(path) || (path != NULL && file_name_ends(path, ".npz")); }

static void add_array(struct fold_axis *f, const char *name, size_t result, bool indices)
{
    struct fold_axis_array *const array = &f->arrays[f->count++];
    snprintf(array->name, sizeof array->name, "%s", name);
    array->result = result;
    array->indices = indices;
    array->type = indices ? ALLFOLD_INT64
                          : rows_type(f->call.fold, result, f->call.packing != NULL ? ALLFOLD_F64 : f->array.type, f->call.result_type);
}

/* Which arrays are wanted. Indices come before values, which a second file gets. */
static void list_arrays(const struct settings *settings, struct fold_axis *f)
{
    const allfold_fold fold = (allfold_fold)settings->command->which;
    if (rows_indexed(fold, 0)) {
        add_array(f, allfold_fold_name(fold), 0, true);
        if (settings->values != NULL || settings->output == NULL || is_of_several(settings->output))
            add_array(f, "value", 0, false);
        return;
    }
    for (size_t i = 0; i < allfold_result_count(fold); i++) {
        const char *const name = fold == ALLFOLD_STATS ? fold_result_name(fold, i) : allfold_fold_name(fold);
        add_array(f, name, i, false);
        if (rows_indexed(fold, i)) {
            char index[32];
            snprintf(index, sizeof index, "arg%s", name);
            add_array(f, index, i, true);
        }
    }
}

/* Refuses options that do not go together, and dimensions that the array does not have. The same on all ranks. */
static allfold_status check(const struct session *session, const struct fold_axis *f, struct error *error)
{
    const struct settings *const settings = session->settings;
    const char *const command = settings->command->name;
    if (settings->partial != NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --partial keeps the partial of a whole array: expected no --axis beside it", command);
    if (settings->total)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --total gives one value: expected no --axis beside it", command);
    if (settings->output != NULL && settings->axis == NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: one value is printed: expected --axis beside -o", command);
    if (settings->output == NULL && f->shape->count > FOLD_AXIS_PRINTED_MAX)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected -o FILE for %" PRIu64 " results: up to %d are printed", command,
                         f->shape->count, FOLD_AXIS_PRINTED_MAX);
    if (settings->output != NULL && settings->command->which == ALLFOLD_STATS && !is_of_several(settings->output))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name that ends in .npz or .nc for several results along an axis, found %s", command,
                         file_shown(settings->output));
    if (settings->values != NULL && is_of_several(settings->output))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected no --values: an output of .npz or .nc has them, too", command);
    return ALLFOLD_OK;
}

/* What a NetCDF file says beside the results. */
static void plan_about(const struct session *session, struct fold_axis *f)
{
    const struct settings *const settings = session->settings;
    f->about = (struct output_about){.input = &session->input, .folded = f->axes.folded, .keeps = settings->keepdims,
                                    .words = settings->words, .word_count = settings->word_count};
}

static void tell_note(const struct session *session, const struct fold_axis *f)
{
    if (f->about.note[0] != '\0' && !session->settings->quiet)
        text_tell(file_shown(session->settings->output), f->about.note);
}

static void plan_files(const struct settings *settings, struct fold_axis *f)
{
    const bool several = is_of_several(settings->output), netcdf = is_netcdf(settings->output);
    const int arrays = several ? f->count : 1;
    f->file_count = settings->output == NULL ? 0 : settings->values != NULL ? 2 : 1;
    for (int i = 0; i < f->file_count; i++) {
        struct session_output *const file = &f->files[i];
        file->path = i == 0 ? settings->output : settings->values;
        file->archive = several && !netcdf;
        file->arrays.about = netcdf ? &f->about : NULL;
        file->arrays.info = f->shape;
        file->arrays.count = arrays;
        for (int k = 0; k < arrays; k++) {
            file->arrays.names[k] = f->arrays[i * arrays + k].name;
            file->arrays.types[k] = f->arrays[i * arrays + k].type;
        }
    }
}

/* What all ranks have left out. */
static void add_missing(struct session *session, const struct fold_axis *f)
{
    uint64_t *const all = comm_gather(session_comm(session), f->array.missing, sizeof *f->array.missing, &session->error);
    session->missing = 0;
    for (int rank = 0; all != NULL && rank < session_comm(session)->size; rank++)
        session->missing += all[rank];
    free(all);
}

static void reduce(struct session *session, void *user)
{
    struct fold_axis *const f = user;
    struct sink *sinks[RESULT_ARRAYS_MAX] = {NULL};
    struct job job;
    for (int file = 0, k = 0; file < f->file_count; file++)
        for (int i = 0; i < f->files[file].arrays.count; i++)
            f->sinks[k++] = f->files[file].sinks[i];
    for (int k = 0; k < f->count; k++)
        sinks[2 * f->arrays[k].result + f->arrays[k].indices] = f->sinks[k];
    session_source(session, &job);
    f->array.source = job.source;
    session->checkpoint.progress.sinks = f->sinks;
    session->checkpoint.progress.sink_count = f->count;
    core_reduce_stream(session->context, &f->call, &f->array, sinks, &session->error);
    source_close(job.source);
    if (session->settings->axis == NULL)
        add_missing(session, f);
}

/* Results that are printed. */
static void reduce_to_memory(struct session *session, struct fold_axis *f)
{
    for (int k = 0; k < f->count; k++) {
        void *const elements = calloc(f->shape->count + 1, sizeof(uint64_t));
        f->memory[k] = core_memory_sink(session->context, elements, elements != NULL ? f->shape->count : 0, f->arrays[k].type);
        f->sinks[k] = &f->memory[k].sink;
        if (elements == NULL)
            error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory for results");
    }
    reduce(session, f);
    for (int k = 0; k < f->count && session->error.status == ALLFOLD_OK; k++)
        core_unite(session->context, &f->memory[k], &session->error);
}

static void run(struct session *session, struct fold_axis *f)
{
    const struct settings *const settings = session->settings;
    const struct array_info *const input = &session->input;
    const allfold_fold fold = (allfold_fold)settings->command->which;
    const bool weighs = settings->weights != NULL, packs = !weighs && (fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN);
    const struct packing *const packing = packs ? array_keep_packed(&session->input) : NULL;
    struct session_weights weights = {.values = NULL};
    uint64_t missing = 0;
    if (weighs)
        session_weights_read(session, &weights);
    if (session->error.status != ALLFOLD_OK || axes_take(session, &f->axes, &f->array) != ALLFOLD_OK) {
        free(weights.values);
        return;
    }
    axes_result(&f->axes, input, settings->keepdims, f->shape);
    f->array.missing = &missing;
    f->array.weights = weighs ? &weights.weights : NULL;
    f->call = (struct fold_call){.fold = weighs ? weights_fold(fold) : fold, .level = packing != NULL ? ALLFOLD_LEVEL_EXACT : session->context->level, .nan = settings->nan,
                                 .result_type = settings->output_type, .ddof = settings->ddof, .packing = packing};
    if (check(session, f, &session->error) != ALLFOLD_OK) {
        free(weights.values);
        return;
    }
    session->checkpoint.progress = (struct resumable){.monoid = fold_monoid(f->call.fold, f->call.level, input->type), .type = input->type};
    f->array.progress = settings->checkpoint != NULL ? &session->checkpoint.progress : NULL;
    list_arrays(settings, f);
    plan_about(session, f);
    plan_files(settings, f);
    if (f->file_count > 0)
        session_write(session, &(struct session_outputs){f->files, f->file_count, reduce, f, f->array.progress, false});
    else
        reduce_to_memory(session, f);
    free(weights.values);
    const double seconds = session_seconds(session);
    session_phases(session);
    tell_note(session, f);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        fold_axis_print(session, f, seconds);
    for (int k = 0; k < f->count; k++)
        free(f->memory[k].elements);
}

void fold_axis_run(struct session *session)
{
    struct fold_axis f = {.shape = calloc(1, sizeof *f.shape), .files = calloc(2, sizeof *f.files)};
    session_describe(session, session->settings->operands, session->settings->operand_count);
    if (f.shape == NULL || f.files == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory to describe the results");
    if (session_agree(session))
        run(session, &f);
    free(f.shape);
    free(f.files);
}
