/* Columns that lie side by side, which the loops of the CPU fold row by row: columns_template.h. */
#pragma once

#include "base/elements.h"

#define FOLD_COLUMNS 2048  /* at most; half of it for lanes of more than FOLD_NARROW bytes, which then still fit the nearest cache */
#define FOLD_NARROW 8
#define FOLD_ROWS 4        /* rows that wide lanes take at a time: lanes are then loaded and stored once for all of them */
#define FOLD_FEW 256       /* columns */
#define FOLD_NEAR 64       /* columns for which rows that come soon are asked for together */
#define FOLD_RUN 512       /* elements of a column that are brought together, at most */
#define FOLD_LANE_RUN 2048 /* elements that a lane takes, at most: as many as exact sums have room for (EXACT_PLAIN) */
#define FOLD_LANES_BYTES ((FOLD_COLUMNS / 2 + 16) * 48)

/* Rows of values: that of column c in row r is x[r * stride + c]. */
struct fold_rows {
    const void *x;
    size_t stride;
    uint32_t count, columns;
    const void *next; /* the rows that are needed behind the last of these, as far apart; NULL: none is to be asked for */
};
