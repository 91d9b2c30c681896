/* Checks the arguments of allfold.h's calls, and turns them into jobs of a pipeline. The files of the calls, api_reduce.c
   and others, share it. What the checks find goes into *error of this rank; the pipeline that follows makes it every rank's.
   An error that is there already stays. */
#pragma once

#include "allfold.h"
#include "core/compare.h"
#include "core/input.h"
#include "core/view.h"

/* Every call begins with it: nothing is wrong yet. Returns &context->error. */
struct error *api_enter(allfold_context *context);
/* When the arguments have been checked: what is wrong with them is found before any work, and is told so. */
void api_checked(allfold_context *context);

/* The error that a caller gives as its own. */
void api_take_failure(allfold_status status, const char *text, struct error *error);

/* *call, which holds the defaults, becomes what the caller gave; NULL: the defaults. Only of many arrays it may have a total. */
void api_take_call_of_many(const allfold_call *given, allfold_call *call, struct error *error);
void api_take_call(const allfold_call *given, allfold_call *call, struct error *error);

/* The same for a view, without a default. */
void api_take_view(const allfold_view_nd *given, allfold_view_nd *view, struct error *error);

/* The same for a comparison. */
void api_take_tolerance(const allfold_tolerance *given, allfold_tolerance *tolerance, struct error *error);

/* The same for what order statistics take, whose struct is `name` in messages and has `bytes` bytes; NULL is refused. */
void api_take_order(const char *name, const void *given, void *known, size_t bytes, struct error *error);

/* Refuses a part whose type, count or address is not valid; a source too. */
void api_check_part(const allfold_array *part, struct error *error);

/* Refuses options that are not valid of a fold of that name; nan_choice: it takes allfold_nan. */
void api_check_call(const char *name, bool nan_choice, const allfold_call *call, struct error *error);

/* Refuses results of this rank alone, of a fold that has none. */
void api_check_own_results(const allfold_call *call, struct error *error);

/* The part, of memory, as a source of its elements in place. After an error one without elements, for a pipeline that only agrees on it. */
struct source api_part_source(const allfold_array *part, const struct error *error);

/* What a call works on, elements in memory or a source: api_operand.c. */
struct api_operand {
    const allfold_array *given;
    const struct allfold_source *of; /* NULL: memory */
    allfold_type type; /* as it is read; until it is opened, of what is given */
    uint64_t count;    /* of this rank's part in memory, or of the whole source */
    /* when it is open */
    struct source *source, memory;
    struct array_info *info; /* as it is read; NULL: memory */
    const struct packing *packing;
    struct range range;      /* this rank's */
    uint64_t key;
};
enum api_use { API_READ, API_SUM /* packed elements may be given as they are */, API_WRITE /* to an output that has a place for each element */ };
/* Checks what is given. The message is of this rank alone. */
void api_operand_take(const allfold_array *given, struct api_operand *operand, struct error *error);
/* Refuses two of which one is a source, or which are sources of different shapes. */
void api_operands_check(const struct api_operand *a, const struct api_operand *b, struct error *error);
/* Opens it for reading, when all else is checked: after an error it has no elements, for a pipeline that only agrees on the error. */
void api_operand_open(const struct allfold_context *context, enum api_use use, struct api_operand *operand, struct error *error);
void api_operand_close(struct api_operand *operand);
struct job api_operand_job(const struct api_operand *operand, void *stream);
/* Two as core/compare.h takes them. */
struct compare_input api_operand_pair(const struct api_operand *a, const struct api_operand *b, void *stream);
struct fold_call api_operand_call(const struct api_operand *operand, allfold_fold fold, const allfold_call *call);

/* Refuses memory of the device. what: its name in the message. */
void api_refuse_device(const struct allfold_context *context, const void *memory, allfold_status status, const char *what, struct error *error);

/* The arguments of a fold as the caller gave them: of one array, x, or of a dot product. */
struct api_fold {
    bool is_dot;
    allfold_fold fold;
    const allfold_array *x, *y;
    const allfold_call *call;
    size_t capacity; /* how many results the caller has room for; not of a dot product */
};
/* The same for the pipeline; job points to the operands beside it, which api_fold_close closes. */
struct api_job {
    struct fold_call call;
    struct api_operand x, y;
    struct compare_input pair; /* of a dot product: both, which are read alike */
    struct compare_alike alike;
    struct job job;
};
void api_fold_prepare(struct allfold_context *context, const struct api_fold *given, struct api_job *prepared, struct error *error);
void api_fold_close(struct api_job *prepared);

/* Gives the caller what was found, for which there is room. */
void api_results_take(const struct fold_results *found, allfold_results *results);

/* Refuses options that are not valid. A fold that does not exist then counts as ALLFOLD_SUM, to fail with the other ranks. */
allfold_fold api_check_fold(allfold_fold fold, const allfold_call *call, size_t capacity, struct error *error);

/* A number that differs where calls differ (FNV-1a). */
static inline uint64_t api_mix(uint64_t key, uint64_t number) { return (key ^ number) * UINT64_C(0x100000001b3); }

/* A view as the pipelines take it, and what that points to. */
struct api_view {
    struct axis_input input; /* without elements if the view is refused, for a pipeline that only agrees on the error */
    struct api_operand operand; /* a source, in place of the input, which has its shape; operand.of is NULL: there is none */
    struct layout layout;
    uint64_t extents[STRIDED_DIMENSIONS_MAX];
    struct weights weights; /* whose values api_view_release frees, */
    uint64_t weights_extents[STRIDED_DIMENSIONS_MAX]; /* and their shape */
    int64_t weights_strides[STRIDED_DIMENSIONS_MAX]; /* for a source */
};
void api_view_prepare(const allfold_view *view, struct api_view *prepared, struct error *error);
void api_view_prepare_nd(const allfold_context *context, const allfold_view_nd *view, struct api_view *prepared, struct error *error);
void api_view_release(struct api_view *prepared);
/* Takes weights as the view has them, for dimensions of these coordinates; NULL: for a source. api_weights.c */
void api_weights_take(const allfold_context *context, const allfold_view_nd *view, const struct dimension *dimensions, struct api_view *prepared,
                      struct error *error);
/* What a fold is if there are weights; refuses folds, options and weights that do not go together. */
allfold_fold api_weights_fold(const struct api_view *prepared, allfold_fold fold, const allfold_call *call, struct error *error);
/* Refuses a view of which two elements are one: they cannot both be written. */
void api_view_check_distinct(const struct axis_input *input, struct error *error);

/* The output of softmax, and what it is to be compared with: x as far as there are elements, else NULL. */
struct api_output {
    void *y;
    allfold_type y_type;
    const void *x;
    allfold_type x_type;
};
/* Refuses an output or options of softmax that are not valid. */
void api_check_softmax(const struct api_output *output, const allfold_call *call, struct error *error);
