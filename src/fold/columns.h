/* Columns that lie side by side, which the loops of the CPU fold row by row: columns_template.h. */
#pragma once

#include "base/elements.h"

#define FOLD_COLUMNS 2048  /* at most */
#define FOLD_ROWS 8        /* that lanes take at a time */
#define FOLD_NEAR 64       /* columns for which the next rows are asked for together */
#define FOLD_RUN 512       /* elements of a column that are brought together, at most */
#define FOLD_LANE_RUN 2048 /* elements that a lane takes, at most: as many as exact sums have room for (EXACT_PLAIN) */
#define FOLD_LANES_BYTES ((FOLD_COLUMNS + 16) * 48)

/* Rows of values: that of column c in row r is x[r * stride + c]. */
struct fold_rows {
    const void *x;
    size_t stride;
    uint32_t count, columns;
    const void *next; /* rows that are needed behind these, as far apart; NULL: all are in a cache */
};
