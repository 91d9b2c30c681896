/* Benchmarks data in files: the library beside loops that only read, only write, or only move what they read to the device,
   with as many threads. */
#include "bench/file.h"

#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CACHED_BYTES = 512 << 10, /* of one read from the system's cache, and of one write: best of 128 KiB to 4 MiB */
    DIRECT_BYTES = 4 << 20,   /* of one direct read, and of one copy to a device */
    DD_BYTES = 1 << 20
};

struct bench_files {
    char input[32], output[40];
    int fd, direct; /* of the input; direct: -1 if the file system refuses direct reads */
    uint64_t bytes;
    int threads;
    char *buffers;         /* DIRECT_BYTES of each thread */
    struct queue **queues; /* two of each thread, for copies to the device; NULL: not opened */
    bool *busy;            /* of each queue */
};

static struct device *device_of(const struct bench *b) { return b->context->device; }

static const char *elements_of(const struct bench *b)
{
    return device_of(b)->backend->own_memory ? b->machine->host_x : b->machine->x;
}

/* Bytes of a file. */
struct extent {
    uint64_t offset;
    size_t bytes;
};

/* Does something with an extent, in the memory of that thread. False: see errno. */
typedef bool extent_function(struct bench *b, int thread, struct extent extent);

/* All of a rank's bytes, cut into equal extents, each of which goes to the next thread that is free. */
struct loop {
    extent_function *work;
    uint64_t extent_bytes;
    int threads;
};

static allfold_status run_loop(struct bench *b, const struct loop *loop, struct error *error)
{
    const uint64_t bytes = b->files->bytes, count = (bytes + loop->extent_bytes - 1) / loop->extent_bytes;
    atomic_int failed = 0;
#pragma omp parallel for schedule(dynamic) num_threads(loop->threads)
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t offset = i * loop->extent_bytes;
        errno = EIO; /* of a call that moves less, and gives no reason */
        if (!loop->work(b, host_thread(), (struct extent){offset, (size_t)u64_min(loop->extent_bytes, bytes - offset)}))
            atomic_store(&failed, errno);
    }
    if (atomic_load(&failed) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, atomic_load(&failed), "%s: the benchmark cannot read or write its file", b->files->input);
    return error->status;
}

static char *buffer_of(const struct bench *b, int thread) { return b->files->buffers + (size_t)thread * DIRECT_BYTES; }

static bool read_extent(struct bench *b, int thread, struct extent extent)
{
    return pread(b->files->fd, buffer_of(b, thread), extent.bytes, (off_t)extent.offset) == (ssize_t)extent.bytes;
}

/* Whole blocks are asked for, also at the end. */
static bool read_extent_directly(struct bench *b, int thread, struct extent extent)
{
    return pread(b->files->direct, buffer_of(b, thread), DIRECT_BYTES, (off_t)extent.offset) == (ssize_t)extent.bytes;
}

static bool write_extent(struct bench *b, int thread, struct extent extent)
{
    (void)thread;
    return pwrite(b->files->fd, elements_of(b) + extent.offset, extent.bytes, (off_t)extent.offset) == (ssize_t)extent.bytes;
}

allfold_status bench_file_pread(struct bench *b, struct error *error)
{
    return run_loop(b, &(struct loop){read_extent, CACHED_BYTES, b->files->threads}, error);
}

allfold_status bench_file_direct(struct bench *b, struct error *error)
{
    return run_loop(b, &(struct loop){read_extent_directly, DIRECT_BYTES, b->files->threads}, error);
}

allfold_status bench_file_dd(struct bench *b, struct error *error)
{
    return run_loop(b, &(struct loop){read_extent, DD_BYTES, 1}, error);
}

/* To the device: a thread reads into one of its queues while the other copies. */

static bool wait_for_queue(struct bench *b, int number)
{
    struct error ignored = {0};
    const bool busy = b->files->busy[number];
    b->files->busy[number] = false;
    return !busy || device_of(b)->backend->wait(b->files->queues[number], &ignored) == ALLFOLD_OK;
}

static bool move_extent(struct bench *b, int thread, struct extent extent)
{
    const struct bench_files *const f = b->files;
    const int number = 2 * thread + (f->busy[2 * thread] ? 1 : 0);
    struct queue *const queue = f->queues[number];
    struct error ignored = {0};
    if (!wait_for_queue(b, number) || pread(f->fd, queue->staging, extent.bytes, (off_t)extent.offset) != (ssize_t)extent.bytes
        || device_of(b)->backend->copy(queue, queue->staging, queue->buffer, extent.bytes, &ignored) != ALLFOLD_OK)
        return false;
    f->busy[number] = true;
    return number % 2 == 0 || wait_for_queue(b, number - 1);
}

allfold_status bench_file_to_device_prepare(struct bench *b, struct error *error)
{
    struct bench_files *const f = b->files;
    if (f->queues != NULL)
        return ALLFOLD_OK;
    f->queues = calloc(2 * (size_t)f->threads, sizeof *f->queues);
    f->busy = calloc(2 * (size_t)f->threads, sizeof *f->busy);
    if (f->queues == NULL || f->busy == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark's queues");
    if (device_of(b)->backend->queues_open(device_of(b), DIRECT_BYTES, 2 * f->threads, f->queues, error) != ALLFOLD_OK) {
        free(f->queues); /* none is open */
        f->queues = NULL;
    }
    return error->status;
}

allfold_status bench_file_to_device(struct bench *b, struct error *error)
{
    run_loop(b, &(struct loop){move_extent, DIRECT_BYTES, b->files->threads}, error);
    for (int i = 0; i < 2 * b->files->threads; i++)
        if (!wait_for_queue(b, i))
            error_set(error, ALLFOLD_DEVICE_ERROR, "the benchmark's copies to the device failed");
    return error->status;
}

allfold_status bench_file_pwrite(struct bench *b, struct error *error)
{
    struct bench_files *const f = b->files;
    const int input = f->fd;
    f->fd = open(f->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (f->fd < 0 || (errno = posix_fallocate(f->fd, 0, (off_t)f->bytes)) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the benchmark cannot create its file", f->output);
    else if (run_loop(b, &(struct loop){write_extent, CACHED_BYTES, f->threads}, error) == ALLFOLD_OK && fsync(f->fd) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the benchmark cannot make its file durable", f->output);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = input;
    return error->status;
}

/* The library, as a command does it. */

static allfold_status open_input(struct bench *b, struct array_info *info, struct job *job, struct error *error)
{
    const struct array_hints hints = {.type = b->task->type};
    if (array_describe(b->files->input, &hints, info, error) == ALLFOLD_OK)
        source_open(info, &job->source, error);
    job->type = b->task->type;
    job->range = (struct range){0, b->task->count};
    return error->status;
}

allfold_status bench_file_fold(struct bench *b, struct error *error)
{
    const struct fold_call call = {.fold = (allfold_fold)b->task->subject->fold, .level = b->task->subject->level};
    struct array_info info;
    struct fold_results found;
    struct job job = {0};
    open_input(b, &info, &job, error);
    if (core_reduce(b->context, &call, &job, &found, error) == ALLFOLD_OK)
        b->results[0] = (allfold_result){.value = found.fields[0].value};
    b->result_count = 1;
    source_close(job.source);
    return error->status;
}

allfold_status bench_file_softmax(struct bench *b, struct error *error)
{
    struct array_info info;
    struct output output;
    struct sink *sink = NULL;
    struct job job = {0};
    const bool created = open_input(b, &info, &job, error) == ALLFOLD_OK
                         && output_create(b->files->output, &info, NULL, &output, error) == ALLFOLD_OK;
    if (created)
        output_open(&output, &sink, error);
    core_softmax(b->context, false, &job, sink, error);
    if (sink != NULL)
        sink->close(sink, error);
    if (created && error->status == ALLFOLD_OK)
        replacement_commit(&output.file, error);
    else if (created)
        replacement_discard(&output.file);
    source_close(job.source);
    return error->status;
}

allfold_status bench_file_softmax_error(struct bench *b, double sumexp, double *found, struct error *error)
{
    const int fd = open(b->files->output, O_RDONLY | O_CLOEXEC);
    char *const y = malloc(b->files->bytes);
    const struct file_range all = {fd, b->files->output, 0, b->files->bytes};
    if (fd < 0 || y == NULL)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the benchmark cannot read its output", b->files->output);
    else if (file_read(&all, y, error) == ALLFOLD_OK)
        *found = machine_cpu_softmax_error(&(struct softmax_found){b->task->type, elements_of(b), y, b->task->count, 1, sumexp},
                                           b->files->threads);
    free(y);
    if (fd >= 0)
        close(fd);
    return error->status;
}

/* The files. */

void bench_file_close(struct bench *b)
{
    struct bench_files *const f = b->files;
    if (f == NULL)
        return;
    for (int i = 2 * f->threads; f->queues != NULL && i-- > 0;)
        device_of(b)->backend->queue_close(f->queues[i]);
    if (f->direct >= 0)
        close(f->direct);
    if (f->fd >= 0) {
        close(f->fd);
        unlink(f->input);
        unlink(f->output);
    }
    free(f->queues);
    free(f->busy);
    free(f->buffers);
    free(f);
    b->files = NULL;
}

static int open_directly(const struct bench_files *f)
{
    const int fd = open(f->input, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || pread(fd, f->buffers, 4096, 0) > 0)
        return fd;
    close(fd);
    return -1;
}

allfold_status bench_file_fill(struct bench *b, struct error *error)
{
    bench_file_close(b);
    struct bench_files *const f = b->files = calloc(1, sizeof *f);
    if (f == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark's files");
    *f = (struct bench_files){.input = "allfold-bench.XXXXXX", .fd = -1, .direct = -1, .bytes = bench_bytes(b),
                              .threads = device_of(b)->threads};
    f->buffers = aligned_alloc(4096, (size_t)f->threads * DIRECT_BYTES);
    if (f->buffers == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark's buffers");
    memset(f->buffers, 1, (size_t)f->threads * DIRECT_BYTES);
    f->fd = mkstemp(f->input);
    if (f->fd < 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "the benchmark cannot create a file in the current folder");
    snprintf(f->output, sizeof f->output, "%s.out", f->input);
    if (run_loop(b, &(struct loop){write_extent, CACHED_BYTES, f->threads}, error) == ALLFOLD_OK && fsync(f->fd) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the benchmark cannot make its file durable", f->input);
    f->direct = open_directly(f);
    return error->status;
}

allfold_status bench_file_ready(struct bench *b, struct error *error)
{
    unlink(b->files->output);
    if (b->task->warm)
        return bench_file_pread(b, error);
    posix_fadvise(b->files->fd, 0, 0, POSIX_FADV_DONTNEED); /* what is in memory only, as on tmpfs, stays */
    return ALLFOLD_OK;
}

static bool in_file(const struct bench *b) { return b->task->place == BENCH_IN_FILE; }
bool bench_file_fits_fold(const struct bench *b) { return in_file(b) && b->task->subject->kind == BENCH_FOLD; }
bool bench_file_fits_softmax(const struct bench *b) { return in_file(b) && b->task->subject->kind == BENCH_SOFTMAX; }
bool bench_file_fits_read(const struct bench *b) { return bench_file_fits_fold(b); }
bool bench_file_fits_direct(const struct bench *b) { return bench_file_fits_fold(b) && b->files->direct >= 0; }
bool bench_file_fits_device(const struct bench *b) { return bench_file_fits_fold(b) && device_of(b)->backend->own_memory; }
