/* The machine of allfold-ladder.so, which `allfold ladder` loads where there is no GPU: opens the emulation, and stands in for the rungs
   that it leaves out, as it has neither the library's kernels nor CUB. */
#include "emulation.h"

#include "kernels/ladder/levels.h"
#include "kernels/ladder/lines.h"
#include "kernels/ladder/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct rung rung_engine = {}, rung_cub = {};
extern const struct line_rung line_row_engine = {}, line_column_engine = {};
extern const struct softmax_rung softmax_engine = {};

size_t fold_scratch_bytes(int) { return 0; }

/* A small GPU: more than one multiprocessor, and a few blocks on each. */
allfold_status gpu_open(int, struct gpu **gpu, struct error *error)
{
    *gpu = (struct gpu *)calloc(1, sizeof **gpu);
    if (*gpu == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to emulate a GPU");
    struct gpu_device *const device = &(*gpu)->device;
    strcpy(device->name, "emulation");
    device->visible = 1;
    device->multiprocessors = 3;
    device->threads_per_multiprocessor = 2048;
    device->emulated = true;
    device->datasheet = NAN;
    emulation_order(1);
    return ALLFOLD_OK;
}

void gpu_close(struct gpu *gpu)
{
    if (gpu == NULL)
        return;
    for (void *place : gpu->buffers)
        free(place);
    for (void *place : gpu->host)
        free(place);
    free(gpu->pinned);
    free(gpu);
}

const struct gpu_device *gpu_device_of(const struct gpu *gpu) { return &gpu->device; }
