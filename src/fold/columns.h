/* Columns that lie side by side, which the loops of the CPU fold row by row: columns_template.h. */
#pragma once

#include "base/elements.h"

#define FOLD_COLUMNS 1024 /* at most */
#define FOLD_ROWS 4       /* taken at a time: lanes are then loaded and stored once for so many elements */
#define FOLD_NEAR 128     /* columns for which rows that come soon are asked for together */
#define FOLD_RUN 512      /* elements of a column in a run, at most */
#define FOLD_LANES_BYTES ((FOLD_COLUMNS + 16) * 48)

/* Rows of values: that of column c in row r is x[r * stride + c]. */
struct fold_rows {
    const void *x;
    size_t stride;
    uint32_t count, columns;
};
