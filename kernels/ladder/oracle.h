/* What a reduction of the ladder's elements (numbers.h) must give: exact integer arithmetic on the host. C. */
#pragma once

#include "kernels/ladder/ladder.h"

/* Element types: X(ID, C type, b). Integers lie in [-2^(b-1), 2^(b-1)); floating-point elements are those divided by
   2^(b-1), so that they fill [-1, 1); the large one is 1.5 on that scale. */
#define LADDER_TYPES(X) X(INT32, int32_t, 31) X(F32, float, 24) X(F64, double, 53)
/* Logits of softmax lie in [-16, 16), and the large one is 24. */
#define LADDER_LOGITS 16.0

struct ladder_oracle {
    allfold_type type;
    uint64_t n;
    long double sum, magnitudes; /* of the elements, and of their absolute values; rounded once */
    int64_t integers;            /* int32: the sum itself */
    double max;                  /* -infinity, or INT32_MIN, of nothing */
};

/* Computes what the n elements of that type must give. Uses all CPU threads. */
void ladder_oracle_compute(allfold_type type, uint64_t n, struct ladder_oracle *oracle);

/* The rows or columns of a matrix of n elements: place j of line i is element i * line_stride + j * place_stride. */
struct ladder_lines {
    uint64_t n, count, length, line_stride, place_stride;
};
/* The sum of each line of int32, modulo 2^32. Uses all CPU threads. */
void ladder_oracle_line_sums(const struct ladder_lines *lines, int32_t *sums);

/* The largest `bits`, of 1 to 24, with which no sum of a line's integers rounds in f32, whatever the order: elements are integers in
   [-2^(bits-1), 2^(bits-1)), and a large one. A line of more than 2^24 places may round. */
int ladder_line_bits(uint64_t length);

/* A line of f32 that are such integers: their sum, and that of their absolute values. */
struct ladder_line {
    double sum, magnitudes;
};
/* Computes what each line must give. Uses all CPU threads. */
void ladder_oracle_lines(const struct ladder_lines *lines, int bits, struct ladder_line *found);
/* Whether a sum of the line differs from the oracle's: at all, or, if sums may round, by more than its additions may amount to. */
bool ladder_line_differs(const struct ladder_line *line, uint64_t length, double sum);

/* What a rung found, and what it may be blamed for. */
struct ladder_answer {
    allfold_value value; /* i64 for int32, else f64 */
    bool wraps;          /* an integer sum is modulo 2^32 */
    double roundings;    /* additions between an element and the result, at most, each of which may round */
    int precision;       /* of what is rounded, in bits */
};

/* NULL if the answer is right, else how it is wrong, in why (of why_bytes). A sum in floating point may differ by
   what its roundings can amount to: roundings * 2^-precision * sum of absolute values. */
const char *ladder_oracle_differs(const struct ladder_oracle *oracle, allfold_fold fold,
                                  const struct ladder_answer *answer, char *why, size_t why_bytes);

/* Of the n f32 logits (numbers.h): the maximum, and the sum of exp(x - max), in float64. */
struct ladder_logits {
    uint64_t n, peak;
    double max, sum;
};
void ladder_oracle_logits(uint64_t n, struct ladder_logits *logits);

/* Compares y with the softmax of the logits, computed in float64. *worst is the largest error in units in
   the last place of f32. An output that is further off than allowed is wrong: then why says which it is; else it is left alone. */
struct ladder_allowed {
    double units, units_below; /* in any case; for each unit that x lies below the maximum (a difference rounded to f32 costs that) */
};
void ladder_oracle_softmax(const struct ladder_logits *logits, const float *y, const struct ladder_allowed *allowed,
                           double *worst, char why[TABLE_TEXT_BYTES]);
