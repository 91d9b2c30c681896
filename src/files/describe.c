/* Described arrays on all ranks: see describe.h. */
#include "files/describe.h"

#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static allfold_status share_bytes(allfold_context *context, void *memory, uint64_t bytes, struct error *error)
{
    if (allfold_share(context, memory, bytes, error->status, error->text) != ALLFOLD_OK)
        *error = context->error;
    return error->status;
}

allfold_status describe_share(allfold_context *context, struct array_info *info, struct error *error)
{
    const bool first = context->comm.rank == 0;
    if (share_bytes(context, info, sizeof *info, error) != ALLFOLD_OK || info->details_bytes == 0)
        return error->status;
    if (!first && (info->details = malloc((size_t)info->details_bytes)) == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory for the %" PRIu64 " bytes that describe it", file_shown(info->path), info->details_bytes);
        info->details_bytes = 0;
    }
    return share_bytes(context, info->details, info->details_bytes, error);
}

allfold_status describe_open(const struct array_info *info, bool first_rank, struct source **source, struct error *error)
{
    if (error->status == ALLFOLD_OK)
        source_open(info, source, error);
    if (first_rank)
        array_check_times(info, error);
    return error->status;
}

void describe_place(const void *info, uint64_t index, char *text, size_t bytes)
{
    char place[ARRAY_PLACE_BYTES];
    array_place_text(info, index, place);
    snprintf(text, bytes, "%s%s", place[0] != '\0' ? ", " : "", place);
}
