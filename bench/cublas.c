/* cuBLAS as a peer of dot products on a GPU. Its library is loaded if it is there; the program does not depend on it, nor this file on CUDA. */
#include "bench/run.h"

#include <dlfcn.h>
#include <stdlib.h>

/* As in cublas_v2.h: a handle is a pointer, a status is 0 if all is well. */
enum { POINTER_MODE_DEVICE = 1 };
typedef int create_function(void **handle);
typedef int destroy_function(void *handle);
typedef int set_stream_function(void *handle, void *stream);
typedef int set_mode_function(void *handle, int mode);
typedef int dot_function(void *handle, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step, void *result);

struct bench_cublas {
    void *library, *handle;
    destroy_function *destroy;
    dot_function *dot_f32, *dot_f64; /* those with counts of 64 bits, of CUDA 12 and newer */
};

static void *load(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

void bench_cublas_open(struct bench *b, struct bench_cublas **cublas)
{
    struct bench_cublas *const opened = *cublas == NULL ? calloc(1, sizeof *opened) : NULL;
    if (opened == NULL)
        return;
    opened->library = load();
    if (opened->library != NULL) {
        create_function *const create = (create_function *)dlsym(opened->library, "cublasCreate_v2");
        set_stream_function *const set_stream = (set_stream_function *)dlsym(opened->library, "cublasSetStream_v2");
        set_mode_function *const set_mode = (set_mode_function *)dlsym(opened->library, "cublasSetPointerMode_v2");
        opened->destroy = (destroy_function *)dlsym(opened->library, "cublasDestroy_v2");
        opened->dot_f32 = (dot_function *)dlsym(opened->library, "cublasSdot_v2_64");
        opened->dot_f64 = (dot_function *)dlsym(opened->library, "cublasDdot_v2_64");
        if (create != NULL && set_stream != NULL && set_mode != NULL && opened->destroy != NULL && opened->dot_f32 != NULL
            && opened->dot_f64 != NULL && create(&opened->handle) == 0 && set_stream(opened->handle, b->machine->stream) == 0
            && set_mode(opened->handle, POINTER_MODE_DEVICE) == 0) {
            *cublas = opened;
            return;
        }
    }
    bench_cublas_close(opened);
}

void bench_cublas_close(struct bench_cublas *cublas)
{
    if (cublas == NULL)
        return;
    if (cublas->handle != NULL && cublas->destroy != NULL)
        cublas->destroy(cublas->handle);
    if (cublas->library != NULL)
        dlclose(cublas->library);
    free(cublas);
}

allfold_status bench_cublas_dot(struct bench *b, struct error *error)
{
    dot_function *const dot = b->task->type == ALLFOLD_F32 ? b->cublas->dot_f32 : b->cublas->dot_f64;
    const int code = dot(b->cublas->handle, (int64_t)b->work.n, b->work.x, 1, b->work.y, 1, b->machine->result);
    return code == 0 ? ALLFOLD_OK : error_set(error, ALLFOLD_DEVICE_ERROR, "cuBLAS's dot product failed with status %d", code);
}
