/* Devices that stand in for GPUs: see cuda_runtime_api.h. The environment says what there is:
     ALLFOLD_STANDIN_DEVICES  how many this host has (default: as many as there are device files /dev/nvidia0, 1, ...)
     ALLFOLD_STANDIN_MEMORY   free bytes of each (default: 64 MiB)
     ALLFOLD_STANDIN_CONTEXTS if it is set, a line on standard error for each context that is opened or closed
     CUDA_VISIBLE_DEVICES     which of them this process sees, as for CUDA: "1,0"; the first that is no device ends the list
   A device's UUID comes from the host's name and its number there. Work is done when a call returns. Any thread may call. */
#include "cuda_runtime_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES_MAX = 64, BLOCKS_MAX = 4096 };

static _Thread_local int current; /* among the visible */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static bool opened[DEVICES_MAX];  /* a context, on the visible device of that number */
static struct {
    const void *memory;
    size_t bytes;
    int device;
} blocks[BLOCKS_MAX]; /* of device memory */

static int installed(void)
{
    const char *const said = getenv("ALLFOLD_STANDIN_DEVICES");
    char path[32];
    int count = 0;
    if (said != NULL)
        return atoi(said);
    do
        snprintf(path, sizeof path, "/dev/nvidia%d", count);
    while (access(path, F_OK) == 0 && ++count < DEVICES_MAX);
    return count;
}

/* The visible devices' numbers on the host; how many. */
static int visible(int numbers[DEVICES_MAX])
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    const int present = installed();
    int count = 0;
    if (list == NULL)
        for (; count < present && count < DEVICES_MAX; count++)
            numbers[count] = count;
    while (list != NULL && *list >= '0' && *list <= '9' && count < DEVICES_MAX) {
        char *end;
        const long number = strtol(list, &end, 10);
        if (number >= present)
            break;
        numbers[count++] = (int)number;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

static int number_of(int device)
{
    int numbers[DEVICES_MAX];
    return device >= 0 && device < visible(numbers) ? numbers[device] : -1;
}

const char *cudaGetErrorString(cudaError_t code) { return code == cudaErrorNoDevice ? "no stand-in device" : "stand-in error"; }

const char *cudaGetErrorName(cudaError_t code)
{
    switch (code) {
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    default: return "cudaErrorUnknown";
    }
}

/* cudaGetLastError is the emulation's (emulation.cpp), which has the kernels' errors. */

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    int numbers[DEVICES_MAX];
    *count = visible(numbers);
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static void set_context(int device, bool is_open, const char *what)
{
    pthread_mutex_lock(&lock);
    if (opened[device] != is_open && getenv("ALLFOLD_STANDIN_CONTEXTS") != NULL)
        fprintf(stderr, "standin: context %s on device %d\n", what, device);
    opened[device] = is_open;
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaSetDevice(int device)
{
    if (number_of(device) < 0)
        return cudaErrorInvalidDevice;
    current = device;
    set_context(device, true, "opened");
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    set_context(current, false, "closed");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (number_of(device) < 0)
        return cudaErrorInvalidDevice;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = 2; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem: *value = 1; break;
    default: *value = 0; break;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    char host[64] = "";
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    const int number = number_of(device);
    if (number < 0)
        return cudaErrorInvalidDevice;
    gethostname(host, sizeof host - 1);
    for (const char *c = host; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in GPU");
    memcpy(properties->uuid.bytes, &hash, sizeof hash);
    properties->uuid.bytes[15] = (char)number;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    const int number = number_of(device);
    snprintf(text, (size_t)bytes, "0000:%02X:00.0", (unsigned int)(number + 1) & 0xff);
    return number < 0 ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    const char *const said = getenv("ALLFOLD_STANDIN_MEMORY");
    *total_bytes = *free_bytes = said != NULL ? strtoull(said, NULL, 10) : 64 << 20;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory)
{
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].memory != NULL && memory >= blocks[i].memory
            && (const char *)memory < (const char *)blocks[i].memory + blocks[i].bytes) {
            attributes->type = cudaMemoryTypeDevice;
            attributes->device = blocks[i].device;
        }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

static void *aligned(size_t bytes) { return aligned_alloc(256, (bytes + 255) / 256 * 256); }

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    void *const allocated = aligned(bytes);
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < BLOCKS_MAX && blocks[i].memory != NULL)
        i++;
    const bool found = allocated != NULL && i < BLOCKS_MAX;
    if (found) {
        blocks[i].memory = *memory = allocated;
        blocks[i].bytes = bytes;
        blocks[i].device = current;
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        free(allocated);
    return found ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; memory != NULL && i < BLOCKS_MAX; i++)
        if (blocks[i].memory == memory)
            blocks[i].memory = NULL;
    pthread_mutex_unlock(&lock);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    (void)flags;
    *memory = aligned(bytes);
    return *memory != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    (void)memory;
    (void)bytes;
    (void)flags;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    (void)memory;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    (void)flags;
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(memory, byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    (void)stream;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    if (bytes > to_pitch || bytes > from_pitch || to_pitch > INT32_MAX || from_pitch > INT32_MAX)
        return cudaErrorInvalidValue;
    for (size_t row = 0; row < rows; row++)
        cudaMemcpyAsync((char *)to + row * to_pitch, (const char *)from + row * from_pitch, bytes, kind, stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    (void)flags;
    *stream = malloc(1);
    return *stream != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    (void)flags;
    *event = malloc(1);
    return *event != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event;
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}
