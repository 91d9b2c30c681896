/* What each rank works with. */
#include "cli/ranks.h"

#include "cli/number.h"
#include "cli/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void describe(const struct session *session, struct rank_info *info)
{
    const struct allfold_context *const context = session->context;
    const struct device *const device = context->device;
    memset(info, 0, sizeof *info);
    info->rank = context->comm.rank;
    info->local_rank = context->comm.local_rank;
    memcpy(info->host, context->comm.host, sizeof info->host);
    device->backend->describe(device, &info->device);
    info->memory = device->memory;
    info->range = session->range;
}

struct rank_info *ranks_gather(struct session *session)
{
    struct comm *const comm = session_comm(session);
    struct rank_info mine, *all = NULL;
    describe(session, &mine);
    if (comm->rank == 0 && (all = malloc((size_t)comm->size * sizeof *all)) == NULL)
        error_set(&session->error, ALLFOLD_NO_MEMORY, "no memory to describe %d ranks", comm->size);
    if (session_agree(session) && comm_gather(comm, &mine, sizeof mine, all, &session->error) == ALLFOLD_OK)
        return all;
    free(all);
    return NULL;
}

int ranks_sharing(const struct rank_info *all, int count, int rank)
{
    int sharing = 0;
    if (all[rank].device.uuid[0] == '\0')
        return 1;
    for (int i = 0; i < count; i++)
        sharing += strcmp(all[i].host, all[rank].host) == 0 && strcmp(all[i].device.uuid, all[rank].device.uuid) == 0;
    return sharing;
}

void ranks_print(FILE *file, const struct rank_info *all, int count, int rank)
{
    const struct rank_info *const r = &all[rank];
    const int sharing = ranks_sharing(all, count, rank);
    fprintf(file, "rank %d on %s: %s", r->rank, r->host, r->device.name);
    if (r->device.uuid[0] != '\0')
        fprintf(file, ", %s, device %d of %d visible, PCI %s", r->device.uuid, r->device.index, r->device.visible,
                r->device.pci);
    if (r->device.numa_node >= 0)
        fprintf(file, ", NUMA node %d", r->device.numa_node);
    fprintf(file, ", %s", number_bytes((double)r->device.memory_total).text);
    fprintf(file, " (%s free", number_bytes((double)r->device.memory_free).text);
    if (r->memory > 0)
        fprintf(file, ", %s to be used", number_bytes((double)r->memory).text);
    fprintf(file, "), %d thread%s", r->device.threads, r->device.threads == 1 ? "" : "s");
    if (sharing > 1)
        fprintf(file, ", SHARED by %d ranks", sharing);
}

void ranks_tell(struct session *session)
{
    const int count = session_comm(session)->size;
    struct rank_info *all = ranks_gather(session);
    for (int i = 0; all != NULL && i < count; i++) {
        fputs("allfold: ", stderr);
        ranks_print(stderr, all, count, i);
        fprintf(stderr, "; %" PRIu64 " elements from %" PRIu64 "\n", all[i].range.count, all[i].range.first);
    }
    free(all);
}
