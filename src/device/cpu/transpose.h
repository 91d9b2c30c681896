/* Transposes matrices of elements of 1, 2, 4 or 8 bytes, for the inner loops. */
#pragma once

#include "fold/arithmetic.h"

#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLES
#endif
#endif

#ifdef HAVE_SHUFFLES
typedef uint16_t vector_2 __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint32_t vector_4 __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t vector_8 __attribute__((vector_size(32), aligned(8), may_alias));

/* Eight rows of eight elements of 2 bytes to eight columns. */
static inline void transpose_8x8_of_2(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride)
{
    vector_2 row[8], pair[8], four[8];
    for (int i = 0; i < 8; i++)
        row[i] = *(const vector_2 *)(from + (size_t)i * from_stride);
    for (int i = 0; i < 8; i += 2) {
        pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 2, 10, 3, 11);
        pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            four[i + 2 * j] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 0, 1, 8, 9, 2, 3, 10, 11);
            four[i + 2 * j + 1] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 4, 5, 12, 13, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        *(vector_2 *)(to + (size_t)(2 * i) * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vector_2 *)(to + (size_t)(2 * i + 1) * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* Eight rows of eight elements of 4 bytes to eight columns. */
static inline void transpose_8x8(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride)
{
    vector_4 row[8], pair[8], four[8];
    for (int i = 0; i < 8; i++)
        row[i] = *(const vector_4 *)(from + (size_t)i * from_stride);
    for (int i = 0; i < 8; i += 2) {
        pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            four[i + 2 * j] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            four[i + 2 * j + 1] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        *(vector_4 *)(to + (size_t)i * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vector_4 *)(to + (size_t)(i + 4) * to_stride) = __builtin_shufflevector(four[i], four[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* Four rows of four elements of 8 bytes to four columns. */
static inline void transpose_4x4(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride)
{
    vector_8 row[4], pair[4];
    for (int i = 0; i < 4; i++)
        row[i] = *(const vector_8 *)(from + (size_t)i * from_stride);
    for (int i = 0; i < 4; i += 2) {
        pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 4, 2, 6);
        pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(vector_8 *)(to + (size_t)i * to_stride) = __builtin_shufflevector(pair[i], pair[i + 2], 0, 1, 4, 5);
        *(vector_8 *)(to + (size_t)(i + 2) * to_stride) = __builtin_shufflevector(pair[i], pair[i + 2], 2, 3, 6, 7);
    }
}
#endif

/* A matrix of elements, rows apart by a stride in bytes. */
struct matrix {
    unsigned char *at;
    size_t stride;
};

/* The part of a matrix that begins at this row and column. */
static inline struct matrix matrix_from(struct matrix whole, uint32_t row, uint32_t column, size_t bytes)
{
    return (struct matrix){whole.at + row * whole.stride + column * bytes, whole.stride};
}

static void transpose_singly(struct matrix to, struct matrix from, uint32_t rows, uint32_t columns, size_t bytes)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            const unsigned char *const x = from.at + r * from.stride + c * bytes;
            unsigned char *const y = to.at + c * to.stride + r * bytes;
            if (bytes == 8)
                memcpy(y, x, 8);
            else if (bytes == 4)
                memcpy(y, x, 4);
            else if (bytes == 2)
                memcpy(y, x, 2);
            else
                *y = *x;
        }
}

/* Prefetches rows that come soon: rows that lie far apart are no stream that the processor sees. */
static inline void prefetch_rows(struct matrix from, uint32_t row, uint32_t rows, size_t bytes)
{
    for (uint32_t r = row; r < row + rows; r++)
        for (size_t at = 0; at < bytes; at += 64)
            FOLD_PREFETCH_FAR(from.at + r * from.stride + at);
}

/* to[c][r] = from[r][c], elements of 1, 2, 4 or 8 bytes. Row by row, as lines that are left half done do not stay in a cache. far: rows are in no cache,
   and the next ones are asked for. */
static void transpose(struct matrix to, struct matrix from, uint32_t rows, uint32_t columns, size_t bytes, bool far)
{
    uint32_t row = 0, column = 0;
#ifdef HAVE_SHUFFLES
    const uint32_t side = bytes == 8 ? 4 : 8;
    if (bytes >= 2) {
        row = rows / side * side;
        column = columns / side * side;
    }
    for (uint32_t r = 0; r < row; r += side) {
        if (far)
            prefetch_rows(from, r + 4 * side, side, columns * bytes);
        for (uint32_t c = 0; c < column; c += side) {
            unsigned char *const y = to.at + c * to.stride + r * bytes;
            const unsigned char *const x = from.at + r * from.stride + c * bytes;
            if (bytes == 2)
                transpose_8x8_of_2(y, to.stride, x, from.stride);
            else if (bytes == 4)
                transpose_8x8(y, to.stride, x, from.stride);
            else
                transpose_4x4(y, to.stride, x, from.stride);
        }
    }
#endif
    transpose_singly(matrix_from(to, column, 0, bytes), matrix_from(from, 0, column, bytes), row, columns - column, bytes);
    transpose_singly(matrix_from(to, 0, row, bytes), matrix_from(from, row, 0, bytes), rows - row, columns, bytes);
}
