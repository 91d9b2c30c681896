/* Gathers the devices and cores of all ranks: see ranks.h. */
#include "cli/ranks.h"

#include "base/host.h"
#include "cli/launch.h"
#include "cli/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What ranks send one another to find the devices of their host. */
struct address {
    char host[sizeof((struct comm *)NULL)->host];
    char pci[sizeof((struct device_info *)NULL)->pci];
};

static void describe(const struct session *session, struct rank_info *info)
{
    const struct allfold_context *const context = session->context;
    const struct device *const device = context->device;
    memset(info, 0, sizeof *info);
    info->rank = context->comm.rank;
    info->local_rank = context->comm.local_rank;
    memcpy(info->host, context->comm.host, sizeof info->host);
    info->device = device->info;
    info->threads = device->threads;
    info->memory = device->memory;
    info->sharers = device->sharers;
    info->first_sharer = device->first_sharer;
    host_cpus(info->cpus, sizeof info->cpus);
    info->cpu_node = host_numa_node();
    info->range = session->range;
}

/* The links from this rank's device to the others of its host: each device once, the first LINKS_MAX of them. */
static void add_links(const struct address *all, int count, struct rank_info *mine)
{
    for (int rank = 0; rank < count && mine->link_count < LINKS_MAX; rank++) {
        bool listed = all[rank].pci[0] == '\0' || strcmp(all[rank].host, mine->host) != 0
                    || strcmp(all[rank].pci, mine->device.pci) == 0;
        for (int i = 0; i < mine->link_count && !listed; i++)
            listed = strcmp(all[mine->links[i].rank].pci, all[rank].pci) == 0;
        if (listed)
            continue;
        mine->links[mine->link_count].rank = rank;
        link_text(mine->device.pci, all[rank].pci, mine->links[mine->link_count++].text);
    }
}

static void find_links(struct session *session, struct rank_info *mine)
{
    struct comm *const comm = session_comm(session);
    struct address address;
    memset(&address, 0, sizeof address);
    memcpy(address.host, mine->host, sizeof address.host);
    memcpy(address.pci, mine->device.pci, sizeof address.pci);
    struct address *const all = comm_gather_all(comm, &address, sizeof address, &session->error);
    if (all != NULL)
        add_links(all, comm->size, mine);
    free(all);
}

struct rank_info *ranks_gather(struct session *session, bool links)
{
    struct rank_info mine;
    describe(session, &mine);
    if (links)
        find_links(session, &mine);
    return comm_gather(session_comm(session), &mine, sizeof mine, &session->error);
}

void ranks_print(FILE *file, const struct rank_info *r)
{
    fprintf(file, "rank %d on %s, local rank %d: %s", r->rank, r->host, r->local_rank, r->device.name);
    if (r->device.uuid[0] != '\0')
        fprintf(file, ", %s, device %d of %d visible, PCI %s", r->device.uuid, r->device.index, r->device.visible,
                r->device.pci);
    if (r->device.numa_node >= 0)
        fprintf(file, ", NUMA node %d", r->device.numa_node);
    fprintf(file, ", %s", number_bytes((double)r->device.memory_total).text);
    fprintf(file, " (%s free", number_bytes((double)r->device.memory_free).text);
    if (r->memory > 0)
        fprintf(file, ", %s to be used", number_bytes((double)r->memory).text);
    fprintf(file, "), %d thread%s", r->threads, r->threads == 1 ? "" : "s");
    if (r->sharers > 1)
        fprintf(file, ", SHARED by %d ranks", r->sharers);
}

void ranks_tell(struct session *session)
{
    const int count = session_comm(session)->size;
    struct rank_info *all = ranks_gather(session, false);
    for (int i = 0; all != NULL && i < count; i++) {
        fputs("allfold: ", stderr);
        ranks_print(stderr, &all[i]);
        fprintf(stderr, "; %" PRIu64 " elements from %" PRIu64 "\n", all[i].range.count, all[i].range.first);
    }
    free(all);
}

void ranks_tell_shared(struct session *session)
{
    const struct device *const device = session->context->device;
    const int count = session_comm(session)->size;
    int shared = 0;
    if (session->settings->quiet)
        return;
    if (comm_count(session_comm(session), device->first_sharer && device->sharers > 1, &shared, &session->error)
            != ALLFOLD_OK || shared == 0)
        return;
    struct rank_info *all = ranks_gather(session, false);
    for (int i = 0; all != NULL && i < count; i++)
        if (all[i].first_sharer && all[i].sharers > 1)
            fprintf(stderr, "allfold: %s on %s is shared by %d ranks, each with its part of the memory: fewer ranks, or "
                    "more visible devices, would be faster\n", all[i].device.uuid, all[i].host, all[i].sharers);
    free(all);
}

/* The cores of one rank. */
struct binding {
    int mine, share;
    char host[sizeof((struct comm *)NULL)->host];
};

void ranks_tell_bound(struct session *session)
{
    struct comm *const comm = session_comm(session);
    struct binding binding = {host_cpus_bound(), host_cpus_of_parent() / comm->local_size, ""};
    int count = 0, first = 0;
    if (session->settings->quiet
        || comm_count(comm, session->launch->unbind != NULL && binding.mine < binding.share, &count, &session->error) != ALLFOLD_OK
        || count == 0)
        return;
    memcpy(binding.host, comm->host, sizeof binding.host);
    struct binding *const all = comm_gather(comm, &binding, sizeof binding, &session->error);
    if (all != NULL) {
        while (first < comm->size - 1 && all[first].mine >= all[first].share)
            first++;
        fprintf(stderr, "allfold: the launcher has bound %d of %d ranks to fewer CPUs than their share of the host (rank %d on %s: "
                "%d, its share is %d), which makes them slower: start with ", count, comm->size, first, all[first].host, all[first].mine, all[first].share);
        fprintf(stderr, session->launch->unbind, all[first].share);
        putc('\n', stderr);
    }
    free(all);
}

/* Whether lists such as "0-7,16" have a number in common. The part that was cut off ("...") does not count. */
static bool overlap(const char *a, const char *b)
{
    while (*a >= '0' && *a <= '9') {
        char *end;
        const long first = strtol(a, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (const char *c = b; *c >= '0' && *c <= '9';) {
            char *stop;
            const long from = strtol(c, &stop, 10), to = *stop == '-' ? strtol(stop + 1, &stop, 10) : from;
            if (from <= last && first <= to)
                return true;
            c = *stop == ',' ? stop + 1 : stop;
        }
        a = *end == ',' ? end + 1 : end;
    }
    return false;
}

allfold_status ranks_check(const struct rank_info *all, int count, struct error *error)
{
    for (const struct rank_info *r = all; r < all + count; r++) {
        if (r->sharers > 1)
            return error_set(error, ALLFOLD_DEVICE_ERROR,
                             "binding: expected a device for each rank, found %s on %s shared by %d ranks: start as many "
                             "ranks as devices, or let the launcher bind (--gpus-per-task=1)",
                             r->device.uuid, r->host, r->sharers);
        if (r->device.uuid[0] != '\0' && r->cpu_node >= 0 && r->device.numa_node >= 0
            && r->cpu_node != r->device.numa_node)
            return error_set(error, ALLFOLD_DEVICE_ERROR,
                             "binding: expected rank %d on %s to have cores near its GPU, on NUMA node %d, found CPUs %s of "
                             "node %d: bind ranks to the cores next to their devices (--cpus-per-task, "
                             "--gpu-bind=closest)", r->rank, r->host, r->device.numa_node, r->cpus, r->cpu_node);
        for (const struct rank_info *s = all; s < r; s++)
            if (strcmp(r->host, s->host) == 0 && overlap(r->cpus, s->cpus))
                return error_set(error, ALLFOLD_DEVICE_ERROR,
                                 "binding: expected cores of its own for each rank, found that ranks %d and %d on %s may "
                                 "run on the same CPUs, %s and %s: bind them (srun --cpu-bind=cores --cpus-per-task=N, "
                                 "mpirun --map-by slot:PE=N --bind-to core)",
                                 s->rank, r->rank, r->host, s->cpus, r->cpus);
    }
    return ALLFOLD_OK;
}
