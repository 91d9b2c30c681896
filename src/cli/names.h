/* Checks the names of files that options name, and tells their endings. */
#pragma once

#include "cli/cli.h"

/* Refuses an option that names a file that the run reads or writes otherwise, so that a slip destroys no data: `other`, or one of the
   input's. Local. remark: the end of the message, or "". */
allfold_status names_refuse_same(const char *option, const char *name, const char *other, const char *what, struct error *error);
void names_refuse_input(struct session *session, const char *option, const char *name, const char *remark);
/* Refuses outputs that hold what else the run reads: info, which was called so. Rank 0. */
void names_refuse_read(struct session *session, const struct array_info *info, const char *called, const char *what);
