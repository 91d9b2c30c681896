/* A backend that fails as planned, around the real one. The library links with this file's backend_choose, which wraps what the real one
   chooses. */
#include "tests/failures/failures.h"

#define backend_choose real_backend_choose
#include "device/backends.c"
#undef backend_choose

#define NAME(name) #name,
const char *const operation_names[] = {"nowhere", OPERATIONS(NAME)};
#undef NAME

struct planted planted;

static bool strikes(enum operation operation, struct error *error)
{
    if (planted.operation != operation || ++planted.calls != planted.at)
        return false;
    error_set(error, ALLFOLD_DEVICE_ERROR, "%s fails as planned", operation_names[operation]);
    return true;
}

#define FAULTY(name, arguments, ...)                               \
    static allfold_status faulty_##name(__VA_ARGS__, struct error *error) \
    {                                                              \
        return strikes(IN_##name, error) ? error->status : planted.real->name arguments; \
    }
FAULTY(locate, (device, memory, place, error), struct device *device, const void *memory, enum place *place)
FAULTY(allocate, (device, bytes, memory, error), struct device *device, size_t bytes, void **memory)
FAULTY(queues_open, (device, bytes, count, queues, error), struct device *device, size_t bytes, int count, struct queue **queues)
FAULTY(enter, (queue, stream, error), struct queue *queue, void *stream)
FAULTY(follow, (queue, stream, error), struct queue *queue, void *stream)
FAULTY(copy, (queue, from, to, bytes, error), struct queue *queue, const void *from, void *to, size_t bytes)
FAULTY(fold, (queue, work, error), struct queue *queue, const struct work *work)
FAULTY(fold_many, (queue, items, count, last, error), struct queue *queue, const struct fold_item *items, uint64_t count, bool last)
FAULTY(softmax_begin, (queue, work, single_rank, error), struct queue *queue, const struct softmax_work *work, bool single_rank)
FAULTY(softmax_finish, (queue, constants, error), struct queue *queue, const struct softmax_constants *constants)
FAULTY(fold_axis, (queue, work, error), struct queue *queue, const struct axis_work *work)
FAULTY(copy_strided, (queue, copy, error), struct queue *queue, const struct strided_copy *copy)
FAULTY(wait, (queue, error), struct queue *queue)

static bool faulty_softmax_axis(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                                struct error *error)
{
    return strikes(IN_softmax_axis, error) || planted.real->softmax_axis(queue, work, constants, place, error);
}

static allfold_status faulty_open(int number, int local_size, const allfold_options *options, struct device **device,
                                  struct error *error)
{
    if (strikes(IN_open, error) || planted.real->open(number, local_size, options, device, error) != ALLFOLD_OK)
        return error->status;
    (*device)->backend = &planted.faulty;
    return ALLFOLD_OK;
}

bool operation_exists(enum operation operation)
{
    bool exists[OPERATION_COUNT] = {false};
#define EXISTS(name) exists[IN_##name] = planted.real->name != NULL;
    OPERATIONS(EXISTS)
#undef EXISTS
    return exists[operation];
}

allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error)
{
    if (real_backend_choose(choice, &planted.real, error) != ALLFOLD_OK)
        return error->status;
    planted.faulty = *planted.real;
#define REPLACE(name)               \
    if (planted.real->name != NULL) \
        planted.faulty.name = faulty_##name;
    OPERATIONS(REPLACE)
#undef REPLACE
    *backend = &planted.faulty;
    return ALLFOLD_OK;
}
