/* A library for LD_PRELOAD that makes one system call of the program fail: ALLFOLD_FAIL="RANK:CALL:K:HOW" lets call
   number K (from 1; 0: every other one) of CALL, on rank RANK, fail with errno HOW (ENOSPC, EIO, EINTR, ENOMEM, EAGAIN, ...), or, for pread, preadv2 and pwrite,
   move half of what was asked (short) or nothing (zero). Counted are the calls of the program's own code, not those of
   shared libraries such as MPI's (or, with ALLFOLD_FAIL_IN=NAME, those of the library whose path has NAME in it), from the start of main to its end: a library that is linked in may make some before
   and after that (CUDA's runtime does), and if one of those fails the program has no say in what happens. When it
   strikes it says "failing: struck" on standard error. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    bool ready, begun; /* there is something to do here; main is under way */
    const char *library;   /* whose calls count; NULL: the program's */
    uintptr_t first, last; /* the code whose calls count */
    char call[24];
    int how; /* an errno, or: */
    enum { FAIL, SHORT, ZERO } kind;
    bool every; /* other call */
    atomic_bool said;
    atomic_int left;
} plan;

/* glibc's own, for what allocates before dlsym can be asked. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* The first object is the program. */
static int find_code(struct dl_phdr_info *info, size_t size, void *nothing)
{
    (void)size;
    (void)nothing;
    if (plan.library != NULL && strstr(info->dlpi_name, plan.library) == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            plan.first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            plan.last = plan.first + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((constructor)) static void prepare(void)
{
    static const struct {
        const char *word;
        int how;
    } words[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EINTR", EINTR}, {"ENOMEM", ENOMEM},
                 {"EAGAIN", EAGAIN}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EINVAL", EINVAL}};
    const char *const text = getenv("ALLFOLD_FAIL"), *const rank = getenv("OMPI_COMM_WORLD_RANK");
    char how[16];
    int on, k;
    if (text == NULL || strncmp(program_invocation_short_name, "allfold", 7) != 0)
        return; /* the launcher, perhaps, or its shell */
    if (sscanf(text, "%d:%23[^:]:%d:%15s", &on, plan.call, &k, how) != 4)
        abort();
    if (on != (rank != NULL ? atoi(rank) : 0))
        return;
    plan.kind = strcmp(how, "short") == 0 ? SHORT : strcmp(how, "zero") == 0 ? ZERO : FAIL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(how, words[i].word) == 0)
            plan.how = words[i].how;
    if (plan.kind == FAIL && plan.how == 0)
        abort();
    atomic_store(&plan.left, k);
    plan.every = k == 0;
    plan.library = getenv("ALLFOLD_FAIL_IN");
    dl_iterate_phdr(find_code, NULL);
    plan.ready = true;
}

static int (*program_main)(int argc, char **argv, char **environment);

static int begin(int argc, char **argv, char **environment)
{
    plan.begun = plan.ready;
    const int status = program_main(argc, argv, environment);
    plan.begun = false;
    return status;
}

/* What a program's first instructions call, with its main. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*end)(void), void *stack);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*end)(void), void *stack)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    program_main = main;
    return real(begin, argc, argv, init, fini, end, stack);
}

/* left: how many calls it is to the one that fails. */
static bool is_turn(int left) { return plan.every ? left % 2 == 0 : left == 1; }

/* Whether this call is the one. */
static bool strikes(const char *call, const void *caller)
{
    static const char said[] = "failing: struck\n";
    if (!plan.begun || (uintptr_t)caller < plan.first || (uintptr_t)caller >= plan.last || strcmp(call, plan.call) != 0
        || !is_turn(atomic_fetch_sub(&plan.left, 1)))
        return false;
    if (!atomic_exchange(&plan.said, true) && write(STDERR_FILENO, said, sizeof said - 1) < 0)
        abort();
    errno = plan.how;
    return true;
}

#define CALLER __builtin_return_address(0)

/* The functions: result, name, parameters, arguments, what failure is, and what they are called in ALLFOLD_FAIL. */
#define FAILING(result, name, parameters, arguments, failed, call)                       \
    result name parameters                                                                \
    {                                                                                     \
        static result(*real) parameters;                                                  \
        if (real == NULL)                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                    \
        return strikes(call, CALLER) ? (failed) : real arguments;                         \
    }

FAILING(int, close, (int fd), (fd), (real(fd), errno = plan.how, -1), "close")
FAILING(int, fsync, (int fd), (fd), -1, "fsync")
FAILING(int, rename, (const char *from, const char *to), (from, to), -1, "rename")
FAILING(int, unlink, (const char *path), (path), -1, "unlink")
FAILING(int, fallocate, (int fd, int mode, off_t offset, off_t bytes), (fd, mode, offset, bytes), -1, "fallocate")
FAILING(int, posix_fallocate, (int fd, off_t offset, off_t bytes), (fd, offset, bytes), plan.how, "fallocate")
FAILING(int, flock, (int fd, int operation), (fd, operation), -1, "flock")
FAILING(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1, "ftruncate")
FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode), -1, "fchmod")
FAILING(int, stat, (const char *restrict path, struct stat *restrict status), (path, status), -1, "stat")
FAILING(int, lstat, (const char *restrict path, struct stat *restrict status), (path, status), -1, "stat")
FAILING(int, fstat, (int fd, struct stat *status), (fd, status), -1, "stat")
FAILING(int, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode), -1, "shm_open")
FAILING(void *, mmap, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
        (at, bytes, protection, flags, fd, offset), MAP_FAILED, "mmap")
FAILING(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
        (thread, attributes, run, argument), plan.how, "pthread_create")

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    return strikes((flags & O_DIRECT) != 0 ? "open_direct" : "open", CALLER) ? -1 : real(path, flags, mode);
}

static size_t fewer(size_t bytes) { return plan.kind == ZERO ? 0 : (bytes + 1) / 2; }

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    if (!strikes("pread", CALLER))
        return real(fd, to, bytes, offset);
    return plan.kind == FAIL ? -1 : real(fd, to, fewer(bytes), offset);
}

ssize_t preadv2(int fd, const struct iovec *to, int count, off_t offset, int flags)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t, int);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "preadv2");
    if (!strikes("preadv2", CALLER))
        return real(fd, to, count, offset, flags);
    const struct iovec less = {to->iov_base, fewer(to->iov_len)};
    return plan.kind == FAIL ? -1 : real(fd, &less, 1, offset, flags);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    if (!strikes("pwrite", CALLER))
        return real(fd, from, bytes, offset);
    return plan.kind == FAIL ? -1 : real(fd, from, fewer(bytes), offset);
}

void *malloc(size_t bytes) { return strikes("malloc", CALLER) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return strikes("malloc", CALLER) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) { return strikes("malloc", CALLER) ? NULL : __libc_realloc(memory, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes)
{
    return strikes("malloc", CALLER) ? NULL : __libc_memalign(alignment, bytes);
}
