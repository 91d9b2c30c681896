/* Sends heartbeats between hosts: see heartbeats.h. A star with rank 0 in the middle: with N hosts, N - 1 small datagrams
   each way in each period. The other hosts send to all addresses of rank 0's host until one answers. */
#include "watch/heartbeats.h"

#include "base/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESSES_MAX 16

/* Where rank 0 listens, and the job's key. Plain bytes, broadcast. */
struct centre {
    uint64_t key;
    uint32_t count;
    struct sockaddr_in addresses[ADDRESSES_MAX];
};

struct heartbeats {
    int socket, host, host_count;
    struct centre centre;
    struct host *hosts;            /* all on rank 0, else rank 0's alone */
    struct sockaddr_in *addresses; /* where each was heard from */
};

static int open_socket(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* This host's addresses except loopback, with the socket's port. */
static void find_addresses(int fd, struct centre *centre)
{
    struct ifaddrs *list = NULL;
    struct sockaddr_in bound = {0};
    socklen_t length = sizeof bound;
    memset(centre, 0, sizeof *centre);
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &length) != 0 || getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i != NULL && centre->count < ADDRESSES_MAX; i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) != 0
            && (i->ifa_flags & IFF_LOOPBACK) == 0) {
            struct sockaddr_in *const address = &centre->addresses[centre->count++];
            memcpy(address, i->ifa_addr, sizeof *address);
            address->sin_port = bound.sin_port;
        }
    freeifaddrs(list);
    if (getrandom(&centre->key, sizeof centre->key, GRND_NONBLOCK) != sizeof centre->key)
        centre->key = (uint64_t)(clock_seconds() * 1e9) ^ (uint64_t)getpid() << 32;
}

static void close_all(struct heartbeats *beats, char *words)
{
    if (beats != NULL) {
        free(beats->hosts);
        free(beats->addresses);
    }
    free(beats);
    free(words);
}

allfold_status heartbeats_open(MPI_Comm leaders, const char words[HOST_WORDS_BYTES], struct heartbeats **opened,
                               struct error *error)
{
    int host, count;
    MPI_Comm_rank(leaders, &host);
    MPI_Comm_size(leaders, &count);
    *opened = NULL;
    if (count == 1)
        return ALLFOLD_OK;
    const int hears = host == 0 ? count : 1;
    struct heartbeats *const beats = calloc(1, sizeof *beats);
    char *const all = malloc((size_t)count * HOST_WORDS_BYTES);
    if (beats != NULL)
        *beats = (struct heartbeats){.socket = -1, .host = host, .host_count = hears,
                                     .hosts = calloc((size_t)hears, sizeof *beats->hosts),
                                     .addresses = calloc((size_t)hears, sizeof *beats->addresses)};
    int failed = all == NULL || beats == NULL || beats->hosts == NULL || beats->addresses == NULL;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, leaders);
    if (failed) {
        close_all(beats, all);
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the heartbeats of %d hosts", count);
    }
    beats->socket = open_socket();
    if (host == 0)
        find_addresses(beats->socket, &beats->centre);
    MPI_Bcast(&beats->centre, (int)sizeof beats->centre, MPI_BYTE, 0, leaders);
    MPI_Gather(words, HOST_WORDS_BYTES, MPI_CHAR, all, HOST_WORDS_BYTES, MPI_CHAR, 0, leaders);
    MPI_Bcast(all, HOST_WORDS_BYTES, MPI_CHAR, 0, leaders);
    for (int i = 0; i < hears; i++)
        memcpy(beats->hosts[i].words, all + (size_t)i * HOST_WORDS_BYTES, HOST_WORDS_BYTES);
    free(all);
    *opened = beats;
    return ALLFOLD_OK;
}

static void listen_all(struct heartbeats *beats, double now)
{
    struct heartbeat beat;
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    ssize_t got;
    while ((got = recvfrom(beats->socket, &beat, sizeof beat, 0, (struct sockaddr *)&from, &length)) >= 0) {
        const uint32_t place = beats->host == 0 ? beat.host : 0;
        length = sizeof from;
        if (got != sizeof beat || beat.key != beats->centre.key || place >= (uint32_t)beats->host_count
            || (beats->host == 0) != (beat.host > 0) || beat.phase >= PHASE_COUNT)
            continue;
        struct host *const host = &beats->hosts[place];
        host->known = true;
        host->heard = now;
        host->last = beat;
        beats->addresses[place] = from;
    }
}

void heartbeats_exchange(struct heartbeats *beats, const struct heartbeat *mine, double now)
{
    struct heartbeat beat = *mine;
    if (beats == NULL || beats->socket < 0)
        return;
    listen_all(beats, now);
    beat.key = beats->centre.key;
    beat.host = (uint32_t)beats->host;
    if (beats->host != 0 && !beats->hosts[0].known)
        for (uint32_t i = 0; i < beats->centre.count; i++)
            sendto(beats->socket, &beat, sizeof beat, MSG_NOSIGNAL, (const struct sockaddr *)&beats->centre.addresses[i],
                   sizeof beats->centre.addresses[i]);
    for (int i = 0; i < beats->host_count; i++)
        if (beats->hosts[i].known)
            sendto(beats->socket, &beat, sizeof beat, MSG_NOSIGNAL, (const struct sockaddr *)&beats->addresses[i],
                   sizeof beats->addresses[i]);
}

struct host *heartbeats_hosts(struct heartbeats *beats, int *count)
{
    *count = beats == NULL ? 0 : beats->host_count;
    return beats == NULL ? NULL : beats->hosts;
}
