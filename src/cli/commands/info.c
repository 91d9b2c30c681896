/* info: describes this build, the MPI it runs on, and the device of each rank. */
#include "cli/commands/commands.h"
#include "cli/help.h"
#include "cli/report.h"

#include "cli/ranks.h"

#include "config.h"
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

#include <stdlib.h>
#include <string.h>

/* Name, text for people, value. */
static const struct {
    const char *name, *text, *value;
} build[] = {
    {"commit", "commit", help_commit},
    {"host", "for", ALLFOLD_BUILD_HOST},
    {"cc", "by", ALLFOLD_BUILD_CC},
    {"cflags", "flags", ALLFOLD_BUILD_CFLAGS},
    {"openmp", "OpenMP", ALLFOLD_BUILD_OPENMP},
    {"hdf5", "HDF5", ALLFOLD_BUILD_HDF5},
    {"libdeflate", "libdeflate", ALLFOLD_BUILD_LIBDEFLATE},
    {"zstd", "zstd", ALLFOLD_BUILD_ZSTD},
    {"cuda", "CUDA", ALLFOLD_BUILD_CUDA},
    {"cuda_arch", "GPU code", ALLFOLD_BUILD_CUDA_ARCH},
};
#define BUILD_COUNT (sizeof build / sizeof *build)

/* Whether the MPI library takes CUDA memory: 1 yes, 0 no, -1 it does not say. allfold never relies on it: partials go through the
   host. */
static int mpi_cuda_aware(void)
{
#ifdef MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() != 0;
#else
    return -1;
#endif
}

/* The library's name and version: the first line of its text. */
static void mpi_library(char text[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\r\n")] = '\0';
}

/* The links of a rank's device. */
static struct json_object *links_json(const struct rank_info *r)
{
    struct json_object *links = json_object_new_array();
    for (int i = 0; i < r->link_count; i++) {
        struct json_object *link = json_object_new_object();
        json_object_object_add(link, "rank", json_object_new_int(r->links[i].rank));
        json_object_object_add(link, "link", r->links[i].text[0] != '\0' ? report_string(r->links[i].text) : NULL);
        json_object_array_add(links, link);
    }
    return links;
}

static struct json_object *rank_json(const struct rank_info *r)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "rank", json_object_new_int(r->rank));
    json_object_object_add(object, "host", report_string(r->host));
    json_object_object_add(object, "local_rank", json_object_new_int(r->local_rank));
    json_object_object_add(object, "device", report_string(r->device.name));
    json_object_object_add(object, "index", json_object_new_int(r->device.index));
    json_object_object_add(object, "visible", json_object_new_int(r->device.visible));
    json_object_object_add(object, "uuid", r->device.uuid[0] != '\0' ? report_string(r->device.uuid) : NULL);
    json_object_object_add(object, "pci", r->device.pci[0] != '\0' ? report_string(r->device.pci) : NULL);
    json_object_object_add(object, "numa_node",
                           r->device.numa_node >= 0 ? json_object_new_int(r->device.numa_node) : NULL);
    json_object_object_add(object, "cpus", report_string(r->cpus));
    json_object_object_add(object, "cpu_numa_node", r->cpu_node >= 0 ? json_object_new_int(r->cpu_node) : NULL);
    json_object_object_add(object, "threads", json_object_new_int(r->threads));
    json_object_object_add(object, "memory_total", json_object_new_uint64(r->device.memory_total));
    json_object_object_add(object, "memory_free", json_object_new_uint64(r->device.memory_free));
    json_object_object_add(object, "memory_budget", json_object_new_uint64(r->memory));
    json_object_object_add(object, "shared", json_object_new_boolean(r->sharers > 1));
    json_object_object_add(object, "ranks_on_device", json_object_new_int(r->sharers));
    json_object_object_add(object, "links", links_json(r));
    return object;
}

static struct json_object *mpi_json(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], standard[16];
    const int aware = mpi_cuda_aware();
    struct json_object *object = json_object_new_object();
    mpi_library(library);
    snprintf(standard, sizeof standard, "%d.%d", MPI_VERSION, MPI_SUBVERSION);
    json_object_object_add(object, "library", report_string(library));
    json_object_object_add(object, "standard", json_object_new_string(standard));
    json_object_object_add(object, "cuda_aware", aware >= 0 ? json_object_new_boolean(aware) : NULL);
    return object;
}

/* What rank 0 sees of a backend's devices. */
static struct json_object *visible_json(const struct backend *backend)
{
    struct error why = {0};
    struct json_object *object = json_object_new_object();
    const int visible = backend->visible(&why).count;
    json_object_object_add(object, "visible", json_object_new_int(visible));
    json_object_object_add(object, "why", visible > 0 ? NULL : report_string(why.text));
    return object;
}

static void print_visible(const struct backend *backend)
{
    struct error why = {0};
    const int visible = backend->visible(&why).count;
    if (visible > 0)
        printf("  %-11s%d visible to rank 0\n", "GPUs", visible);
    else
        printf("  %-11snone: %s\n", "GPUs", why.text);
}

static void print_json(const struct session *session, const struct rank_info *all, int count)
{
    struct json_object *report = json_object_new_object(), *built = json_object_new_object(), *ranks = json_object_new_array();
    for (size_t i = 0; i < BUILD_COUNT; i++)
        json_object_object_add(built, build[i].name, json_object_new_string(build[i].value));
    for (int i = 0; i < count; i++)
        json_object_array_add(ranks, rank_json(&all[i]));
    json_object_object_add(report, "command", json_object_new_string(session->settings->command->name));
    json_object_object_add(report, "version", json_object_new_string(allfold_version()));
    json_object_object_add(report, "build", built);
    json_object_object_add(report, "mpi", mpi_json());
    for (int i = 0; i < backend_count; i++)
        if (backends[i]->own_memory)
            json_object_object_add(report, backends[i]->name, visible_json(backends[i]));
    json_object_object_add(report, "backend", json_object_new_string(session->context->device->backend->name));
    report_exchange(session, report);
    json_object_object_add(report, "ranks", json_object_new_int(count));
    json_object_object_add(report, "devices", ranks);
    report_print(report);
}

static void print_build(const struct session *session)
{
    static const char *const aware[] = {"unknown", "no", "yes"};
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    const int hosts = session->context->comm.hosts;
    mpi_library(library);
    printf("allfold %s\n", allfold_version());
    for (size_t i = 0; i < BUILD_COUNT; i++)
        if (build[i].value[0] != '\0')
            printf("  %-11s%s\n", build[i].text, build[i].value);
    printf("  %-11s%s\n  %-11s%s (not needed)\n", "MPI", library, "CUDA-aware", aware[mpi_cuda_aware() + 1]);
    for (int i = 0; i < backend_count; i++)
        if (backends[i]->own_memory)
            print_visible(backends[i]);
    printf("  %-11s%s\n", "backend", session->context->device->backend->name);
    printf("  %-11s%s, %d host%s\n", "exchange", report_exchange_name(session), hosts, hosts == 1 ? "" : "s");
}

static void print_rank(const struct rank_info *r)
{
    ranks_print(stdout, r);
    printf("\n  CPUs %s", r->cpus);
    if (r->cpu_node >= 0)
        printf(" of NUMA node %d", r->cpu_node);
    for (int i = 0; i < r->link_count; i++)
        printf("%s rank %d %s", i == 0 ? "; links to the device of" : ",", r->links[i].rank,
               r->links[i].text[0] != '\0' ? r->links[i].text : "unknown");
    putchar('\n');
}

void info_run(struct session *session)
{
    if (session->settings->operand != NULL) {
        info_file_run(session);
        return;
    }
    if (session->settings->hints.slice != NULL) {
        session->error.shared = error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "info: expected a FILE beside --slice") != ALLFOLD_OK;
        return;
    }
    const int count = session_comm(session)->size;
    struct rank_info *all = ranks_gather(session, true);
    if (all != NULL && session->settings->json)
        print_json(session, all, count);
    else if (all != NULL) {
        if (!session->settings->quiet)
            print_build(session);
        for (int i = 0; i < count; i++)
            print_rank(&all[i]);
    }
    if (all != NULL && session->settings->check)
        ranks_check(all, count, &session->error);
    free(all);
    session_agree(session);
}
