/* Finds a GPU, or loads the emulation: see ladder_machine.h. The emulation is a shared object of its own because a program that links
   it has its thread-local memory, hundreds of kilobytes, at every start. */
#include "cli/commands/ladder_machine.h"

#include "allfold.h"
#include "device/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OBJECT "allfold-ladder.so"

/* NULL: it is not there, or of another version. */
static const struct ladder_machine *load(const char *folder, const char *path)
{
    char name[4096 + 256];
    snprintf(name, sizeof name, "%s%s", folder, path);
    void *const object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const struct ladder_machine *const machine = object != NULL ? dlsym(object, "ladder_machine") : NULL;
    return machine != NULL && strcmp(machine->version, allfold_version()) == 0 ? machine : NULL;
}

/* Beside the program, as in its build folder, or where make install puts it. */
static const struct ladder_machine *load_emulation(void)
{
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    char *const slash = strrchr(program, '/');
    if (slash == NULL)
        return NULL;
    slash[1] = '\0';
    const struct ladder_machine *const machine = load(program, OBJECT);
    return machine != NULL ? machine : load(program, ALLFOLD_MACHINE_DIR "/" OBJECT);
}

const struct ladder_machine *ladder_machine_find(allfold_backend backend, struct error *error)
{
    struct error why = {.text = "--backend=cpu"};
    const struct ladder_machine *emulation;
    if (backend != ALLFOLD_BACKEND_CPU && backend_cuda.visible(&why).count > 0)
        return &ladder_machine;
    if (backend == ALLFOLD_BACKEND_CUDA)
        error_set(error, ALLFOLD_UNSUPPORTED, "ladder: no CUDA device: %s", why.text);
    else if ((emulation = load_emulation()) != NULL)
        return emulation;
    else
        error_set(error, ALLFOLD_UNSUPPORTED, "ladder: no CUDA device (%s), nor " OBJECT ", which emulates one, in the program's folder or "
                  "in " ALLFOLD_MACHINE_DIR " from there: build allfold without --disable-emulation", why.text);
    return &ladder_machine;
}
