/* Lists the arrays of several names, for folds and comparisons of several arrays: see list.h. */
#include "cli/commands/list.h"

#include "cli/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct input_listing {
    struct input_list *list;
    uint64_t capacity;
    struct error *error;
};

static void take(void *user, struct array_entry *entry)
{
    struct input_listing *const l = user;
    struct input_list *const list = l->list;
    if (array_entry_is_strange(entry)) {
        report_left_out(entry);
        return;
    }
    if (list->count == l->capacity) {
        const uint64_t capacity = 2 * l->capacity + 16;
        struct array_info *const larger = realloc(list->arrays, capacity * sizeof *larger);
        if (larger == NULL) {
            error_set(l->error, ALLFOLD_NO_MEMORY, "no memory to describe %" PRIu64 " arrays", capacity);
            return;
        }
        list->arrays = larger;
        l->capacity = capacity;
    }
    memcpy(&list->arrays[list->count++], &entry->info, sizeof entry->info);
    entry->info.details = NULL;
}

allfold_status input_list_read(struct input_list *list, const char *const *names, int count, const struct array_hints *hints, struct error *error)
{
    struct input_listing l = {list, 0, error};
    return array_describe_each(names, count, hints, take, &l, &list->files, error);
}

void input_list_free(struct input_list *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        array_release(&list->arrays[i]);
    free(list->arrays);
}

void input_list_share(struct session *session, struct array_info *array)
{
    if (array != NULL) {
        array_release(&session->input);
        memcpy(&session->input, array, sizeof *array);
        array->details = NULL;
    }
    session_share_input(session);
}
