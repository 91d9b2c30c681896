/* Calls CUB, NVIDIA's own library of reductions, with which ladder and benchmark compare. C. */
#pragma once

#include "base/base.h"

/* CUB_SUMEXP and CUB_NORMALISE are softmax's second and third pass; they need the largest element of all. CUB_SORT and CUB_BINS take f32, f64, int32,
   of fewer than 2^31; CUB_SORT also bf16. */
enum cub_work { CUB_SUM, CUB_SUM_GPU_TO_GPU, CUB_MAX, CUB_SUMEXP, CUB_NORMALISE, CUB_SORT, CUB_BINS };
struct cub_call {
    enum cub_work work;
    allfold_type type; /* f32, f64, bf16, f16 or int32 */
    uint64_t count;
    uint64_t length; /* CUB_SUM and CUB_MAX: elements of a row, each folded by itself, below 2^31; 0: of all */
    double max; /* the largest element, for the passes that need it; CUB_BINS: bins are from -max on and below max */
    double sum; /* of exponentials, for CUB_NORMALISE */
    const void *x; /* device memory, as what follows */
    void *result;  /* one value, or one a row; CUB_NORMALISE: the elements' softmax; CUB_SORT: the elements, sorted; CUB_BINS: uint32 counts */
    int bins;      /* CUB_BINS: even ones */
};
