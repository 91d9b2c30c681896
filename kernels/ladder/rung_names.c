/* Lists the rungs' names and ideas. In every build, also in one without CUDA. */
#include "kernels/ladder/ladder.h"

#define ROW(ID, name, idea) {name, idea},
#define LIST(list, ROWS)                                \
    static const struct ladder_rung list##_all[] = {ROWS(ROW)}; \
    const struct ladder_rung_list list = {list##_all, sizeof list##_all / sizeof *list##_all};
LIST(ladder_rungs, LADDER_RUNGS)
LIST(ladder_softmax_rungs, LADDER_SOFTMAX_RUNGS)
LIST(ladder_row_rungs, LADDER_ROW_RUNGS)
LIST(ladder_column_rungs, LADDER_COLUMN_RUNGS)
