/* The arrays that names mean, each for itself, on rank 0. */
#pragma once

#include "cli/session.h"

/* All zero: none. */
struct input_list {
    struct array_info *arrays;
    uint64_t count, files;
};

/* Describes them. What is no array of numbers is left out, which standard error is told. */
allfold_status input_list_read(struct input_list *list, const char *const *names, int count, const struct array_hints *hints, struct error *error);
void input_list_free(struct input_list *list);

/* The session's input becomes rank 0's array, which passes to it; NULL on others. Collective. */
void input_list_share(struct session *session, struct array_info *array);
