/* Opens and closes contexts, and checks and converts what the calls of allfold.h take: api.h. */
#include "api.h"

#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A struct of options that begins with its size, as the caller's header had it: `name` in messages, into `known`, which has
   this header's `bytes`, at least `least` of them in any version, and the defaults, which stay where given is NULL. */
struct options_copy {
    const char *name;
    const void *given;
    void *known;
    size_t bytes, least;
};

/* Fields that the caller's header lacks keep their default; those that this one lacks must be zero. */
static void options_take(const struct options_copy *copy, struct error *error)
{
    const size_t largest = 4096; /* of any later version: bytes beyond it are not the caller's options */
    size_t size;
    if (copy->given == NULL)
        return;
    memcpy(&size, copy->given, sizeof size);
    if (size < copy->least || size > largest) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s.size is %zu: expected sizeof(%s), which begins every %s: set it", copy->name,
                  size, copy->name, copy->name);
        return;
    }
    for (size_t i = copy->bytes; i < size; i++)
        if (((const char *)copy->given)[i] != 0) {
            error_set(error, ALLFOLD_UNSUPPORTED, "%s sets a field that allfold %s does not know: expected zero behind its %zu "
                      "bytes, or a newer library", copy->name, allfold_version(), copy->bytes);
            return;
        }
    memcpy(copy->known, copy->given, size < copy->bytes ? size : copy->bytes);
}

/* Where the first published versions of the structs end. */
#define END_OF(type, field) (offsetof(type, field) + sizeof((type){0}.field))

struct error *api_enter(allfold_context *context)
{
    context->error = (struct error){0};
    return &context->error;
}

void api_checked(allfold_context *context)
{
    if (context->error.status != ALLFOLD_OK)
        phase_enter(context->comm.progress, PHASE_START);
}

void api_take_call_of_many(const allfold_call *given, allfold_call *call, struct error *error)
{
    const struct options_copy copy = {"allfold_call", given, call, sizeof *call, END_OF(allfold_call, result_type)};
    options_take(&copy, error);
}

void api_take_call(const allfold_call *given, allfold_call *call, struct error *error)
{
    api_take_call_of_many(given, call, error);
    if (call->total != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.total is for allfold_reduce_many: expected 0");
}

void api_take_tolerance(const allfold_tolerance *given, allfold_tolerance *tolerance, struct error *error)
{
    const struct options_copy copy = {"allfold_tolerance", given, tolerance, sizeof *tolerance, END_OF(allfold_tolerance, equal_nan)};
    options_take(&copy, error);
}

void api_take_order(const char *name, const void *given, void *known, size_t bytes, struct error *error)
{
    const struct options_copy copy = {name, given, known, bytes, bytes};
    if (given == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s is NULL: begin with its INIT", name);
    options_take(&copy, error);
}

void api_take_view(const allfold_view_nd *given, allfold_view_nd *view, struct error *error)
{
    const struct options_copy copy = {"allfold_view_nd", given, view, sizeof *view, END_OF(allfold_view_nd, type)};
    if (given == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view is NULL");
    options_take(&copy, error);
}

void api_check_call(const char *name, bool nan_choice, const allfold_call *call, struct error *error)
{
    if ((unsigned)call->nan > ALLFOLD_NAN_ERROR)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "NaN policy %d does not exist", (int)call->nan);
    else if (call->nan != ALLFOLD_NAN_PROPAGATE && !nan_choice)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s always propagates NaN: stats can leave it out or refuse it", name);
    if (call->logarithm != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has no logarithm: allfold_call.logarithm is for softmax", name);
    if (call->result_type != ALLFOLD_TYPE_NONE && !(type_exists(call->result_type) && type_kind(call->result_type) == 'f'))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "results are f16, bf16, f32 or f64, not %s", allfold_type_name(call->result_type));
}

allfold_status allfold_open(MPI_Comm comm, const allfold_options *options, allfold_context **context, char *message,
                            size_t message_bytes)
{
    allfold_options known = ALLFOLD_OPTIONS_INIT;
    const struct options_copy copy = {"allfold_options", options, &known, sizeof known, END_OF(allfold_options, log_user)};
    struct error error = {0}, refused = {0};
    struct comm none; /* of a rank without context, which must tell the others */
    struct allfold_context *const ctx = calloc(1, sizeof *ctx);
    options_take(&copy, &refused);
    *context = NULL;
    const double opening = clock_seconds();
    if (ctx == NULL)
        error_set(&error, ALLFOLD_NO_MEMORY, "no memory for a context");
    if (comm_open(&comm, known.exchange, ctx != NULL ? &ctx->comm : &none, &error) == ALLFOLD_OK) {
        ctx->opening = opening;
        error = refused; /* now that the others can be told */
        if (core_open(ctx, &known, &error) != ALLFOLD_OK)
            comm_close(&ctx->comm);
    }
    if (error.status == ALLFOLD_OK)
        *context = ctx;
    else
        free(ctx);
    if (message != NULL && message_bytes > 0)
        snprintf(message, message_bytes, "%s", error.text);
    return error.status;
}

allfold_status allfold_open_f(MPI_Fint comm, const allfold_options *options, allfold_context **context, char *message,
                              size_t message_bytes)
{
    return allfold_open(MPI_Comm_f2c(comm), options, context, message, message_bytes);
}

void allfold_close(allfold_context *context)
{
    if (context == NULL)
        return;
    core_deliveries_close(context);
    core_close(context);
    comm_close(&context->comm);
    free(context);
}

const char *allfold_version(void) { return ALLFOLD_VERSION; }

const char *allfold_message(const allfold_context *context) { return context->error.text; }

void api_take_failure(allfold_status status, const char *text, struct error *error)
{
    const bool is_error = status > ALLFOLD_OK && status <= ALLFOLD_STOPPED;
    error_set(error, is_error ? status : ALLFOLD_BAD_ARGUMENT, "%s", text != NULL ? text : "the caller gives no reason");
}

allfold_status allfold_share(allfold_context *context, void *memory, size_t bytes, allfold_status status, const char *text)
{
    const size_t piece = (size_t)1 << 30; /* MPI counts bytes in an int */
    struct error *const error = &context->error, given = {0};
    if (status != ALLFOLD_OK)
        api_take_failure(status, text, &given); /* text may be this context's message, which the call clears */
    *error = given;
    api_checked(context);
    comm_agree(&context->comm, error);
    for (size_t at = 0; at < bytes && error->status == ALLFOLD_OK; at += piece)
        comm_broadcast(&context->comm, 0, (char *)memory + at, u64_min(piece, bytes - at), error);
    return error->status;
}

allfold_status allfold_fail(allfold_context *context, allfold_status status, const char *text)
{
    return allfold_share(context, NULL, 0, status != ALLFOLD_OK ? status : ALLFOLD_BAD_ARGUMENT, text);
}
