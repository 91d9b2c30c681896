/* A source around a source in chunks that keeps some of them for a while: those of which a reader needs a part only,
   since another reader will need the rest soon. */
#pragma once

#include "array/array.h"

/* *source becomes such a one, which owns it. On an error *source is closed. */
allfold_status kept_chunks_open(const char *name, struct source **source, struct error *error);
