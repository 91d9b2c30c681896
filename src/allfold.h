/* allfold: fold (reduce) arrays that are spread over MPI ranks, or compute their softmax, on GPUs or CPUs.

   The only public header. Each rank opens a context on a communicator and passes its part of one global array. The global array is
   the concatenation of the parts in rank order. Every rank gets the same result:

       allfold_context *context;
       allfold_result sum;
       char message[512];
       if (allfold_open(MPI_COMM_WORLD, NULL, &context, message, sizeof message) != ALLFOLD_OK)
           fprintf(stderr, "%s\n", message);
       else if (allfold_reduce(context, ALLFOLD_SUM, &(allfold_array){.data = x, .count = n, .type = ALLFOLD_F32}, NULL,
                               &sum) != ALLFOLD_OK)
           fprintf(stderr, "%s\n", allfold_message(context));
       else
           printf("%g\n", allfold_number(sum.value));
       allfold_close(context);

   The library never exits, and prints only through the log callback. All ranks of the communicator must call the functions
   marked collective in the same order. These return the same status on all ranks: an error on one rank is every rank's error.
   A context serves one thread at a time. There is no state outside contexts. */
#ifndef ALLFOLD_H
#define ALLFOLD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what the shared library exports */
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Element types, one line each: X(ID, name, NumPy's name, bytes an element, kind, value). kind is 'f' floating point,
   'i' signed integer, 'u' unsigned integer, 'b' truth: 1 or 0, whatever byte but 0 stands for 1; value is the type in which arithmetic on an element starts. */
#define ALLFOLD_TYPES(X)                      \
    X(F16, f16, "float16", 2, 'f', f32)       \
    X(BF16, bf16, "bfloat16", 2, 'f', f32)    \
    X(F32, f32, "float32", 4, 'f', f32)       \
    X(F64, f64, "float64", 8, 'f', f64)       \
    X(INT8, int8, "int8", 1, 'i', i32)        \
    X(INT16, int16, "int16", 2, 'i', i32)     \
    X(INT32, int32, "int32", 4, 'i', i32)     \
    X(INT64, int64, "int64", 8, 'i', i64)     \
    X(UINT8, uint8, "uint8", 1, 'u', u32)     \
    X(UINT16, uint16, "uint16", 2, 'u', u32)  \
    X(UINT32, uint32, "uint32", 4, 'u', u32)  \
    X(UINT64, uint64, "uint64", 8, 'u', u64)  \
    X(BOOL, bool, "bool", 1, 'b', u32)

/* Folds, one line each: X(ID, name, the monoid that computes it, how many results it has at most, what it is). The
   monoids are src/fold/. */
#define ALLFOLD_FOLDS(X)                                                                                    \
    X(SUM, sum, sum, 1, "sum of the elements")                                                              \
    X(PROD, prod, prod, 1, "product of the elements")                                                       \
    X(MEAN, mean, sum, 1, "arithmetic mean")                                                                \
    X(MIN, min, min, 1, "smallest element")                                                                 \
    X(MAX, max, max, 1, "largest element")                                                                  \
    X(ARGMIN, argmin, argmin, 1, "smallest element and the index of its first place")                       \
    X(ARGMAX, argmax, argmax, 1, "largest element and the index of its first place")                        \
    X(NORM1, norm1, norm1, 1, "sum of absolute values (L1 norm)")                                           \
    X(NORM2, norm2, norm2, 1, "root of the sum of squares (L2 norm)")                                       \
    X(NORMINF, norminf, norminf, 1, "largest absolute value (Linf norm)")                                   \
    X(LOGSUMEXP, logsumexp, sumexp_f64, 1, "logarithm of the sum of exponentials")                          \
    X(STATS, stats, stats, 10, "count, NaN count, sum, mean, variance, min, max, L1, L2, Linf in one pass") \
    X(VARIANCE, variance, stats, 1, "mean square of the deviations from the mean")                         \
    X(STD, std, stats, 1, "standard deviation: root of the variance")

typedef enum {
    ALLFOLD_TYPE_NONE = 0, /* not set: refused as an array's type, the default of a result's */
#define ALLFOLD_ENUM_TYPE(ID, name, numpy, bytes, kind, value) ALLFOLD_##ID,
    ALLFOLD_TYPES(ALLFOLD_ENUM_TYPE)
#undef ALLFOLD_ENUM_TYPE
    ALLFOLD_TYPE_COUNT /* not a type: the one behind the last */
} allfold_type;
#define ALLFOLD_SOURCE ((allfold_type)(1 << 8)) /* in place of a type: the data is an allfold_source, which has one */

typedef enum {
#define ALLFOLD_ENUM_FOLD(ID, name, monoid, results, text) ALLFOLD_##ID,
    ALLFOLD_FOLDS(ALLFOLD_ENUM_FOLD)
#undef ALLFOLD_ENUM_FOLD
    ALLFOLD_FOLD_COUNT
} allfold_fold;

typedef enum {
    ALLFOLD_OK = 0,
    ALLFOLD_BAD_ARGUMENT, /* a call or an option that is not valid */
    ALLFOLD_BAD_INPUT,    /* a damaged or unsuitable file */
    ALLFOLD_NO_VALUE,     /* the fold has no value here: min of nothing, NaN under ALLFOLD_NAN_ERROR */
    ALLFOLD_OVERFLOW,     /* an integer result that its reported type cannot hold */
    ALLFOLD_UNSUPPORTED,  /* not in this build, or not on this machine */
    ALLFOLD_NO_MEMORY,    /* host or device memory ran out */
    ALLFOLD_IO_ERROR,     /* the system refused to read or write */
    ALLFOLD_DEVICE_ERROR, /* CUDA failed */
    ALLFOLD_MPI_ERROR,    /* MPI failed: the communicator must not be used further */
    ALLFOLD_STOPPED       /* the program was asked to stop by a signal, and has */
} allfold_status;

/* What min, max, argmin, argmax and stats make of NaN. Other folds always propagate it. */
typedef enum {
    ALLFOLD_NAN_PROPAGATE = 0, /* the result is NaN; the index is the first NaN's */
    ALLFOLD_NAN_OMIT,          /* as if the NaNs were not there */
    ALLFOLD_NAN_ERROR          /* refuse with ALLFOLD_NO_VALUE */
} allfold_nan;

/* What sum, mean, norm1, norm2, stats, dot products, logsumexp and softmax promise: docs/numerics.md. The other folds have one method:
   products are FAST, extremes EXACT. */
typedef enum {
    ALLFOLD_LEVEL_EXACT = 0, /* the real number, rounded once (logsumexp, softmax: nearly); the same bits on any ranks and
                                devices */
    ALLFOLD_LEVEL_FAST       /* wide accumulators; the same bits on the same ranks and devices */
} allfold_level;

typedef enum { ALLFOLD_BACKEND_AUTO = 0, ALLFOLD_BACKEND_CUDA, ALLFOLD_BACKEND_CPU } allfold_backend;

/* How ranks combine their partials. At level exact both give the same bits. */
typedef enum {
    ALLFOLD_EXCHANGE_AUTO = 0, /* ranks of one host through shared memory if they can, hosts through MPI */
    ALLFOLD_EXCHANGE_MPI       /* all ranks through MPI alone */
} allfold_exchange;

/* A result's number: floating point folds give f64, integer folds i64 or u64 (sums are exact, or ALLFOLD_OVERFLOW). */
typedef enum { ALLFOLD_VALUE_F64, ALLFOLD_VALUE_I64, ALLFOLD_VALUE_U64 } allfold_value_kind;
typedef struct {
    allfold_value_kind kind;
    union {
        double f64;
        int64_t i64;
        uint64_t u64;
    };
} allfold_value;

#define ALLFOLD_NO_INDEX UINT64_MAX

/* One number that a fold found. */
typedef struct {
    const char *name;    /* "value"; for ALLFOLD_STATS the statistic's, such as "mean". The library's, never freed */
    allfold_value value;
    uint64_t index;      /* of the element in the global array, from 0: argmin, argmax, and min and max of stats; else
                            ALLFOLD_NO_INDEX */
    uint64_t count;      /* elements in the global array */
    allfold_level level; /* how it was computed */
} allfold_result;

/* Where a fold with several results writes them. */
typedef struct {
    allfold_result *results; /* the caller's, room for `capacity` of them */
    size_t capacity;         /* at least allfold_result_count(fold) */
    size_t count;            /* written by the library: how many there are */
} allfold_results;

/* An array that liballfold-files opened, in a file or generated: allfold_files.h. */
typedef struct allfold_source allfold_source;

/* This rank's part of the global array. data is host memory, or memory of the context's CUDA device, aligned to the
   element size; it stays the caller's. A rank may have count 0 (data is then not read). type is equal on all ranks, also
   on those with count 0.
   Or, with type ALLFOLD_SOURCE and count 0, data is an allfold_source, which is the whole global array, the same on all ranks. Each reads some of
   it, while it computes: elements need not fit any memory. Counts and indices of results are those of the array, in the order in which its
   elements lie; missing elements are left out of counts. All functions that take an allfold_array take sources, but for those that begin a fold. Where
   there are two arrays, both are sources or none is. */
typedef struct {
    const void *data;
    uint64_t count;
    allfold_type type;
} allfold_array;

/* Options of allfold_open. Begin with ALLFOLD_OPTIONS_INIT, or set .size = sizeof(allfold_options): a size that is not
   set is refused. It tells the library which fields the caller's header has. Later versions add fields at the end, so
   programs work with them unchanged. A field that is set, but unknown to an older library, is refused. In all fields except
   size zero means the default. Equal on all ranks. */
typedef struct {
    size_t size;             /* sizeof(allfold_options) */
    allfold_backend backend; /* auto: cuda if a device is visible, else cpu; an error if that differs among ranks */
    uint64_t device_memory;  /* bytes of device memory to use for one rank; default three quarters of what is free,
                                divided by the ranks that share the device */
    uint64_t staging_bytes;  /* bytes of a shard of data that streams; default chosen by the backend */
    int threads;             /* CPU threads of one rank, at most 4096; default the cores it may run on, shared with local ranks */
    allfold_level level;     /* of the folds that have a choice */
    allfold_exchange exchange; /* how ranks combine their partials */
    void (*log)(void *user, const char *line); /* called with progress worth telling, without a newline */
    void *log_user;
} allfold_options;
#define ALLFOLD_OPTIONS_INIT \
    {sizeof(allfold_options), ALLFOLD_BACKEND_AUTO, 0, 0, 0, ALLFOLD_LEVEL_EXACT, ALLFOLD_EXCHANGE_AUTO, NULL, NULL}

/* Options of one call; NULL means all defaults. Begin with ALLFOLD_CALL_INIT, or set .size = sizeof(allfold_call): as in
   allfold_options. In all fields except size zero means the default. */
typedef struct {
    size_t size;      /* sizeof(allfold_call) */
    void *stream;     /* cudaStream_t on which device data is ready; NULL: the legacy default stream */
    allfold_nan nan;  /* for the folds that have a choice; for others it must be ALLFOLD_NAN_PROPAGATE */
    int logarithm;    /* softmax only: not 0 for log-softmax */
    allfold_type result_type; /* folds only: the floating-point type to which results are rounded, once where the fold is
                                 exact, and exactly; counts are never rounded; ALLFOLD_TYPE_NONE: f64, and
                                 integers stay integers */
    uint64_t ddof;    /* stats, variance and std only: the variance is divided by the number of elements less ddof; NaN if that is not positive */
    int own_results;  /* folds along an axis only: not 0 gives each rank its own results alone, 0 gives all to all */
    uint64_t total;   /* allfold_reduce_many only: not 0 gives one result, of all arrays joined */
} allfold_call;
#define ALLFOLD_CALL_INIT {sizeof(allfold_call), NULL, ALLFOLD_NAN_PROPAGATE, 0, ALLFOLD_TYPE_NONE, 0, 0, 0}

/* Options of a comparison; NULL means all defaults. Begin with ALLFOLD_TOLERANCE_INIT, or set .size: as in allfold_options. In all fields
   except size zero means the default. */
typedef struct {
    size_t size;       /* sizeof(allfold_tolerance) */
    void *stream;      /* as in allfold_call */
    double atol, rtol; /* a difference is outside if |a - b| > atol + rtol |b|; not negative, not NaN */
    int equal_nan;     /* not 0: NaN is equal to NaN */
} allfold_tolerance;
#define ALLFOLD_TOLERANCE_INIT {sizeof(allfold_tolerance), NULL, 0.0, 0.0, 0}

/* An element between two others of the sorted array, as numpy.quantile has it. */
typedef enum {
    ALLFOLD_QUANTILE_LINEAR = 0, /* (1 - t) a + t b: the real number, t the exact fraction of q (n - 1), rounded once to f64 */
    ALLFOLD_QUANTILE_LOWER,      /* a, an element */
    ALLFOLD_QUANTILE_HIGHER,     /* b */
    ALLFOLD_QUANTILE_NEAREST,    /* the nearer one; of a half that with the even number */
    ALLFOLD_QUANTILE_MIDPOINT    /* their mean, rounded once; a if there is no fraction */
} allfold_quantile_method;

/* Which quantiles. Begin with ALLFOLD_QUANTILES_INIT, or set .size: as in allfold_options. Equal on all ranks. */
typedef struct {
    size_t size;     /* sizeof(allfold_quantiles) */
    void *stream;    /* as in allfold_call */
    const double *q; /* from 0 to 1, in any order; the median is 0.5 */
    size_t count;    /* of q, at most 65,536 */
    allfold_quantile_method method;
    allfold_nan nan; /* propagate: if any element is NaN, every quantile is */
} allfold_quantiles;
#define ALLFOLD_QUANTILES_INIT {sizeof(allfold_quantiles), NULL, NULL, 0, ALLFOLD_QUANTILE_LINEAR, ALLFOLD_NAN_PROPAGATE}

/* Which elements. As above. */
typedef struct {
    size_t size;     /* sizeof(allfold_top) */
    void *stream;    /* as in allfold_call */
    uint64_t k;      /* at most 2^20, and at most the number of elements */
    int smallest;    /* not 0: the smallest in place of the largest */
    allfold_nan nan; /* propagate: NaN is larger than all others */
} allfold_top;
#define ALLFOLD_TOP_INIT {sizeof(allfold_top), NULL, 0, 0, ALLFOLD_NAN_PROPAGATE}

/* The bins of a histogram. As above. */
typedef struct {
    size_t size;         /* sizeof(allfold_bins) */
    void *stream;        /* as in allfold_call */
    uint64_t count;      /* of bins, at most 2^20 */
    const double *edges; /* count + 1 of them, none below the one before; NULL: bins of even width */
    int has_range;       /* of even bins, not 0: they are from low to high. 0: from the least number to the largest, which costs a pass more */
    double low, high;
} allfold_bins;
#define ALLFOLD_BINS_INIT {sizeof(allfold_bins), NULL, 0, NULL, 0, 0.0, 0.0}

/* What a histogram leaves out. */
typedef struct {
    uint64_t count; /* elements of the global array */
    uint64_t below, above, nan;
} allfold_outside;

/* The largest of some differences. */
typedef struct {
    allfold_value value; /* an f64; of max_ulp a u64 */
    uint64_t index;      /* of the first place where it is found, in the global array; ALLFOLD_NO_INDEX: the value is 0 */
    allfold_value a, b;  /* both values there; 0 if there is none */
} allfold_largest;

/* What a comparison of two arrays found. docs/compare.md says what each number is, to the bit. */
typedef struct {
    size_t size;    /* sizeof(allfold_comparison): set by the caller. Later versions add fields at the end */
    uint64_t count; /* elements */
    uint64_t different, outside; /* elements whose values differ; by more than the tolerance allows */
    uint64_t nan_a, nan_b, nan_both;
    uint64_t missing_a, missing_b, missing_both; /* missing in one array only, in both: of files; 0 for arrays in memory */
    int within;     /* 1: none is outside */
    int has_ulp;    /* 1: there is max_ulp */
    allfold_largest max_abs, max_rel, max_ulp;
    double mean_difference, rmse; /* NaN if there is no pair of numbers */
} allfold_comparison;
#define ALLFOLD_COMPARISON_INIT {.size = sizeof(allfold_comparison)}

/* The dimension of an array of three that the ranks share out: the global array is the concatenation of their parts along it, in
   rank order. */
typedef enum { ALLFOLD_CUT_OUTER = 0, ALLFOLD_CUT_AXIS, ALLFOLD_CUT_INNER } allfold_cut;

/* This rank's part of a global array of outer x length x inner elements. Folds and softmax run along the dimension of `length`,
   the axis; there are outer x inner results. Any array and any run of its neighbouring axes is such a view: outer is the product of
   the dimensions before them, length that of theirs, inner that of those behind. Element (o, l, i) is
   data[o * outer_stride + l * axis_stride + i]. data is host memory, or memory of the context's CUDA device, aligned to the element
   size; it stays the caller's, and is not read where there are no elements. Ranks may have different sizes, 0 too, in the
   dimension that they cut, and only there. type and cut are equal on all ranks, strides need not be. */
typedef struct {
    const void *data;
    uint64_t outer, length, inner;
    uint64_t outer_stride, axis_stride; /* in elements; 0: dense, length * axis_stride and inner */
    allfold_type type;
    allfold_cut cut;
} allfold_view;

/* The same of an array of any dimensions, of which any are folded: an allfold_view is the short form. Begin with ALLFOLD_VIEW_ND_INIT, or set
   .size = sizeof(allfold_view_nd). With type ALLFOLD_SOURCE data is an allfold_source, whose dimensions the bits of axes mean: rank, shape, strides
   and cut are not read, weights are those of the whole array, results are host memory, of the whole array, and if its elements lie in Fortran's order,
   in that order. Else data is the element whose coordinates are all 0. The dimensions that are folded count as one, in C order
   (the last varies fastest), and so do the others, which the results have: indices, and the places of results, count in these orders. Fast
   folds take the elements in the order of pieces, which depends on shape and strides. */
typedef struct {
    size_t size;            /* sizeof(allfold_view_nd) */
    const void *data;
    int rank;               /* 1 to 64 */
    const uint64_t *shape;  /* rank extents */
    const int64_t *strides; /* in elements; 0 repeats elements, a negative one goes back. NULL: dense, in C order */
    uint64_t axes;          /* bit d: dimension d is folded; at least one */
    int cut;                /* the dimension that the ranks share out: any */
    allfold_type type;
    /* Of sum, mean, variance and std: the weight of each element, in host memory; NULL: there are none. sum gives sum w x, mean sum w x / sum w,
       variance sum w (x - mean)^2 / sum w (ddof must be 0), each rounded once to f64 or result_type; NaN if all weights are 0. Each
       rank has the weights of its part. Weights are finite and not negative, but of sum. Elements of int64 and uint64 are refused. */
    const void *weights;
    const int64_t *weights_strides; /* rank of them, in weights: 0 along a dimension in which they do not differ. NULL: dense, in C order */
    allfold_type weights_type;      /* f32 or f64 */
} allfold_view_nd;
#define ALLFOLD_VIEW_ND_INIT {sizeof(allfold_view_nd), NULL, 0, NULL, NULL, 0, 0, ALLFOLD_TYPE_NONE, NULL, NULL, ALLFOLD_TYPE_NONE}

/* Where one of a fold's results is written, for every row: arrays of outer x inner elements, the last the fastest, in host memory or
   memory of the context's CUDA device. NULL: not wanted. */
typedef struct {
    void *values;     /* of allfold_result_type */
    int64_t *indices; /* along the axis, from 0, of argmin, argmax, and min and max of stats; -1: none. NULL for all others */
} allfold_output;

/* One output for each result of a fold, in the order of allfold_result_name. */
typedef struct {
    const allfold_output *outputs;
    size_t count; /* at most allfold_result_count(fold); results behind are not wanted */
} allfold_outputs;

typedef struct allfold_context allfold_context;

/* The name of a type or a fold ("f32", "sum"); the meaning of a status. Never NULL: other values give "no type", "no fold",
   "unknown status". */
const char *allfold_type_name(allfold_type type);
const char *allfold_fold_name(allfold_fold fold);
const char *allfold_status_text(allfold_status status);
/* Bytes of one element; 0 if the value is not a type. */
size_t allfold_type_bytes(allfold_type type);
/* How many results the fold has at most: 1, or more for ALLFOLD_STATS; 0 if the value is not a fold. Later versions may have
   more statistics. */
size_t allfold_result_count(allfold_fold fold);

/* The name of result number i of the fold: "value", or that of one of the statistics; NULL if there is none. */
const char *allfold_result_name(allfold_fold fold, size_t i);
/* The type of its values along an axis, for elements of a type and the result_type of a call: that one, or if it is
   ALLFOLD_TYPE_NONE f64, int64 or uint64. Counts are always uint64. ALLFOLD_TYPE_NONE if there is no such result or type, or if
   result_type is not a floating-point type. */
allfold_type allfold_result_type(allfold_fold fold, size_t i, allfold_type type, allfold_type result_type);

/* The result of that name, or NULL. */
const allfold_result *allfold_result_find(const allfold_results *results, const char *name);

/* The value as a double (an i64 or u64 is rounded to nearest). */
double allfold_number(allfold_value value);

/* The library's version, "1.2.3". */
const char *allfold_version(void);

/* Where allfold_log_probs writes, for every row, as allfold_outputs: f64, and int64; host or device memory. NULL: not wanted. */
typedef struct {
    void *log_prob;  /* log-softmax of the row at its target; 0 if the target is ignored */
    void *logsumexp;
    void *entropy;   /* of the row's softmax, in nats */
    int64_t *argmax; /* index along the axis of the first that is the largest, or of the first NaN; -1: the axis is empty */
} allfold_log_probs_output;

/* Log-probabilities of each row of the global array along the axis, such as the logits of a token over a vocabulary, which the ranks may
   share out. The logits are read once. targets: of each of this rank's rows (of all rows, the same on all ranks, if the axis is cut) an
   index along the whole axis, in host or device memory. *ignore_index (NULL: -100), the same on all ranks, names none; any other number that is
   no index is an error, which names the row. targets may be NULL if no log_prob is wanted. Which outputs are wanted, results of all ranks or own
   results, ranks and errors: as allfold_reduce_axis. Level exact, the default, gives the same bits for every cut and number of ranks. A row
   that has a NaN or +inf, or nothing but -inf, has log_prob and entropy NaN; its logsumexp is that of ALLFOLD_LOGSUMEXP. Logits are f16, bf16,
   f32 or f64. call->nan and logarithm must be 0, call->result_type ALLFOLD_TYPE_NONE or ALLFOLD_F64. If the axis is cut, the logits of all
   ranks lie in device memory, or those of none. Bounds: docs/numerics.md. */
allfold_status allfold_log_probs(allfold_context *context, const allfold_view *view, const int64_t *targets, const int64_t *ignore_index,
                                 const allfold_call *call, const allfold_log_probs_output *output);

/* The gradient of the sum over rows of -scale[row] * log_prob: y = scale[row] * (softmax - 1 at the target), and 0 in rows whose target is ignored.
   logsumexp: what allfold_log_probs found, of the rows that targets names; scale: the same, NULL: 1. Both are f64, in host or device
   memory. targets NULL: nothing is subtracted. y has the layout of the view, and may be view->data, as in allfold_softmax_axis; both lie in
   device memory, or both in host memory. Needs no results of other ranks, but all call it. A row whose logsumexp is NaN or infinite becomes
   NaN. After an error y is unspecified. */
allfold_status allfold_log_probs_gradient(allfold_context *context, const allfold_view *view, const int64_t *targets, const int64_t *ignore_index,
                                          const double *logsumexp, const double *scale, void *y, allfold_type y_type, const allfold_call *call);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif /* ALLFOLD_H */

/* The calls. They are separate so that the library's own files can use the tables above without mpi.h. */
#if !defined(ALLFOLD_CALLS_H) && !defined(ALLFOLD_WITHOUT_MPI)
#define ALLFOLD_CALLS_H
#include <mpi.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* what the shared library exports */
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Opens a context. Collective over comm, which is duplicated and stays the caller's; MPI must be initialised. options
   may be NULL. On failure *context is NULL, and message (of message_bytes, cut to fit; may be NULL) says why, the same on
   all ranks; on success it is empty. Of CUDA devices each rank takes the calling thread's current one if on any rank that is not
   device 0, else device local rank modulo visible devices. The context keeps it. */
allfold_status allfold_open(MPI_Comm comm, const allfold_options *options, allfold_context **context, char *message,
                            size_t message_bytes);

/* The same for a communicator of Fortran: an integer of `use mpi`, or comm%MPI_VAL of `use mpi_f08`. */
allfold_status allfold_open_f(MPI_Fint comm, const allfold_options *options, allfold_context **context, char *message,
                              size_t message_bytes);

/* Frees the context and all that it holds. Collective; NULL is allowed. Must be called before MPI_Finalize. */
void allfold_close(allfold_context *context);

/* What went wrong in the last call that failed, with rank and host; the same text on all ranks. Valid until the next
   call on the context. Not collective. */
const char *allfold_message(const allfold_context *context);

/* Takes part in the collective call that the other ranks make, with an error that this rank's program found before it could call: a
   binding that cannot convert its arguments, a caller without memory. The call fails on all ranks with this status and text. Returns
   the status; one that is no error counts as ALLFOLD_BAD_ARGUMENT. Collective. */
allfold_status allfold_fail(allfold_context *context, allfold_status status, const char *text);

/* Gives rank 0's bytes to all ranks, unless a rank passes a status that is an error, with its text: then the call fails on all ranks, and memory
   stays as it is. For what one rank reads for all. bytes is equal on all ranks, and may be 0. Collective. */
allfold_status allfold_share(allfold_context *context, void *memory, size_t bytes, allfold_status status, const char *text);

/* Folds the global array that the ranks' parts make up, in rank order, to one number. Collective and blocking: *result,
   equal on every rank, is written only on ALLFOLD_OK. A fold with several results is refused. NaN, infinities, empty
   arrays: docs/numerics.md. */
allfold_status allfold_reduce(allfold_context *context, allfold_fold fold, const allfold_array *part,
                              const allfold_call *call, allfold_result *result);

/* The same for all folds: writes every result of the fold to results->results, in the order of docs/library.md, and how
   many to results->count, only on ALLFOLD_OK. Results of ALLFOLD_STATS that an empty array does not have are left out. A
   capacity that is too small is refused before any work. */
allfold_status allfold_reduce_all(allfold_context *context, allfold_fold fold, const allfold_array *part,
                                  const allfold_call *call, allfold_results *results);

/* Folds several global arrays, each to one number: results[i] is what allfold_reduce gives of arrays[i], this rank's part of global array i.
   Arrays may have any lengths, types of their own, and lie in host or device memory, device memory ready in call->stream. All ranks pass as many,
   of the same types. With call->total there is one result, of all arrays joined, the first first: they have one type, and there is at least
   one. Arrays in device memory take a few launches together, whatever their number, and the ranks exchange all partials at once, 8 kB at a
   time. Level exact gives the bits of each array alone, as does level fast on the CPU; on a GPU level fast gives bits that depend on the
   ranks' parts of that array alone, not on the other arrays, the GPU's model, or where the elements lie. Collective and blocking: results,
   which has room for `count` or one, is equal on every rank, and written only on ALLFOLD_OK. A fold with several results is refused. An error
   of one array, which its message names, fails the call. */
allfold_status allfold_reduce_many(allfold_context *context, allfold_fold fold, const allfold_array *arrays, size_t count,
                                   const allfold_call *call, allfold_result *results);

/* The dot product of two global arrays: the sum of x[i] * y[i]. x and y are this rank's parts, of one element type (any) and as many
   elements; each may be host or device memory, and they may be the same. Collective and blocking: *result, equal on every rank, is
   written only on ALLFOLD_OK. At ALLFOLD_LEVEL_EXACT it is the real number, rounded once: products are not rounded, nor lost where
   they underflow or overflow. 0 * inf is NaN, as is +inf with -inf; of an empty array it is 0. Integers: exact, an i64 or u64, or
   ALLFOLD_OVERFLOW, unless call->result_type is a floating-point type. call->nan must be 0. */
allfold_status allfold_dot(allfold_context *context, const allfold_array *x, const allfold_array *y, const allfold_call *call,
                           allfold_result *result);

/* Compares two global arrays, a and b, in one pass. They have as many elements on each rank; their types may differ among floating-point types,
   and among integers (bool is one). Each may be host or device memory. Collective and blocking:
   *comparison, equal on every rank and to the bit on any number of ranks and on any device, is written only on ALLFOLD_OK: as far as its
   .size says. Differences are no error: see .within. tolerance may be NULL. docs/compare.md defines every number. */
allfold_status allfold_compare(allfold_context *context, const allfold_array *a, const allfold_array *b, const allfold_tolerance *tolerance,
                               allfold_comparison *comparison);

/* Order statistics of a global array, of any element type, exactly. They are the same to the bit on any number of ranks and on any device.
   Collective and blocking; outputs, equal on every rank, are host memory, and written only on ALLFOLD_OK, but for those of a histogram. docs/order.md.

   Quantiles: results[i] is that of quantiles->q[i]. An element is an f64, or of integers an i64 or u64; what lies between two is an f64.
   ALLFOLD_NO_VALUE: the array is empty, or what ALLFOLD_NAN_OMIT leaves of it, or it has NaN under ALLFOLD_NAN_ERROR. */
allfold_status allfold_quantile(allfold_context *context, const allfold_array *part, const allfold_quantiles *quantiles, allfold_result *results);

/* The k largest or smallest elements, in order, ties in the order of their indices: values of the array's type, and indices in the global
   array. Either may be NULL. */
allfold_status allfold_topk(allfold_context *context, const allfold_array *part, const allfold_top *top, void *values, int64_t *indices);

/* How many elements are in each bin: from its edge on and below the next, in the last one also those that equal the last edge. Elements are
   compared with the f64 edges themselves. counts: bins->count of them; edges: NULL, or gets bins->count + 1, of even bins those of
   numpy.linspace. outside may be NULL. If the call fails, counts and edges may have been written: a host does that while a device counts. */
allfold_status allfold_histogram(allfold_context *context, const allfold_array *part, const allfold_bins *bins, int64_t *counts, double *edges,
                                 allfold_outside *outside);

/* Folds in two phases, so that several share one exchange between the ranks, and so that kernels and the caller's own work overlap.
   A fold that has begun. 0: none. */
typedef uint64_t allfold_request;

/* Begin a fold, or a dot product, of which the arguments are those of allfold_reduce_all and allfold_dot. Nothing is exchanged. If
   the data is device memory, kernels are started in call->stream, after what is in it, and the call does not wait for them; other data
   is folded before it returns. The data must stay as it is until the end. *request names the fold. At most 16 can be open on a context:
   one more is ALLFOLD_BAD_ARGUMENT, as is a NULL request, and nothing has begun; else the status is ALLFOLD_OK, and allfold_reduce_end
   tells what is wrong. All ranks begin the same folds in the same order. Other calls are allowed before the end. */
allfold_status allfold_reduce_begin(allfold_context *context, allfold_fold fold, const allfold_array *part, const allfold_call *call,
                                    allfold_request *request);
allfold_status allfold_dot_begin(allfold_context *context, const allfold_array *x, const allfold_array *y, const allfold_call *call,
                                 allfold_request *request);

/* In place of a begin that the other ranks make, with an error that this rank's program found before it could: see allfold_fail. The end of
   *request fails with this status and text, on all ranks. */
allfold_status allfold_fail_begin(allfold_context *context, allfold_status status, const char *text, allfold_request *request);

/* Ends a fold that was begun, in any order, and writes its results as allfold_reduce_all does; of most folds, and of dot products,
   there is one. Collective and blocking. The first end exchanges all folds that are begun by then and not delivered, at once as far as their
   partials have 8 kB together; later ends of these are local. They fail together: an error of one, on any rank, is the status of the end of each. The
   request is closed whatever the status is. One that is not open is ALLFOLD_BAD_ARGUMENT. What is wrong with the arguments of a later
   end is the status of this rank alone. allfold_close drops requests that are open. */
allfold_status allfold_reduce_end(allfold_context *context, allfold_request request, allfold_results *results);

/* Has the results of a fold that was begun stored in device memory, in `stream` (as in allfold_call): work behind it in that stream finds
   them, and the host does not wait. outputs are those of allfold_reduce_axis, with one element each: of most folds, and of dot products,
   there is one, `values` of the type that allfold_result_type says, and of argmin and argmax `indices`. Either may be NULL, and must else be
   memory that the device can write. Each fold has an exchange of its own, which a thread of the context makes when its kernel has ended; a
   kernel waits for that in the stream. The fold stays open: allfold_reduce_end gives its status, and the results on the host, when it is
   called. After an error NaN is stored, 0 in place of an integer, -1 in place of an index. All ranks call this for the same folds, in the
   same order, and must share memory: ranks of several hosts are ALLFOLD_UNSUPPORTED. The first call on a context waits for all ranks.
   With the CPU backend the exchange is made and the results are stored, in host memory, before this returns; stream must be NULL.
   A status other than ALLFOLD_OK is this rank's alone: what is wrong with the arguments. */
allfold_status allfold_reduce_deliver(allfold_context *context, allfold_request request, const allfold_outputs *outputs, void *stream);

/* y[i] = exp(x[i] - max) / sum(exp(x - max)) over the global array, or with call->logarithm its logarithm. Collective
   and blocking: on return y is complete on every rank. y holds part->count elements of type y_type (f16, bf16, f32 or
   f64; ALLFOLD_TYPE_NONE: that of the part, if it is one of these), in host or device memory; y == part->data is allowed
   if the types are equal, and refused if not; other overlaps are not allowed. y may be NULL if part->count is 0. A global
   array that holds NaN or +inf, or nothing but -inf, gives NaN everywhere. call->nan and call->result_type must be 0. After
   an error y is unspecified. Of a source y is host memory, and gets the whole array on every rank. */
allfold_status allfold_softmax(allfold_context *context, const allfold_array *part, void *y, allfold_type y_type,
                               const allfold_call *call);

/* Folds the global array along the axis: each of its outer x inner rows as allfold_reduce_all folds an array. Collective and
   blocking. All ranks get the results of the whole array, or with call->own_results their own: of their part, or, if the axis is cut,
   of their part of all n results (rank r of P those from r * (n / P) + min(r, n % P) on, the first n % P ranks one more). Level exact,
   the default, gives the same bits for every cut and number of ranks. NaN, infinities and empty axes count row by row as in a
   fold of one array; an error (an integer that overflows, min of nothing) names the result by its place in the whole array, also
   with call->own_results.
   Statistics that a row does not have are NaN. There is no NaN among integers: stats of integers along an empty axis is refused if min
   or max is wanted and call->result_type is not set. Which outputs are wanted is equal on all ranks that get results; those of the
   other ranks may be NULL. After an error the outputs are unspecified. */
allfold_status allfold_reduce_axis(allfold_context *context, allfold_fold fold, const allfold_view *view, const allfold_call *call,
                                   const allfold_outputs *outputs);

/* The same along all dimensions that the view folds. Outputs have the others, in C order. */
allfold_status allfold_reduce_nd(allfold_context *context, allfold_fold fold, const allfold_view_nd *view, const allfold_call *call,
                                 const allfold_outputs *outputs);

/* Softmax, or with call->logarithm log-softmax, of each row of the global array along the axis, as allfold_softmax. If the axis is
   cut, each rank has some elements of every row, and none are gathered. y has the layout of the view, strides included; what lies
   between its elements is not written. y == view->data is allowed if the types are equal, and refused if not; other overlaps are not
   allowed. A view of which two elements are one is refused; runs may be interleaved. */
allfold_status allfold_softmax_axis(allfold_context *context, const allfold_view *view, void *y, allfold_type y_type,
                                    const allfold_call *call);

/* The same along all dimensions that the view folds. Refused unless each stride is beyond all that the shorter ones reach, so that no two
   elements are one. */
allfold_status allfold_softmax_nd(allfold_context *context, const allfold_view_nd *view, void *y, allfold_type y_type,
                                  const allfold_call *call);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif /* ALLFOLD_CALLS_H */
