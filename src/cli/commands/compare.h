/* The parts of the command compare: compare.c does the work, compare_report.c prints. */
#pragma once

#include "cli/commands/list.h"
#include "core/compare.h"

/* Two arrays of one name, on rank 0, and what is found of them. */
struct compare_item {
    struct array_info *a, *b; /* NULL: there is none of that name */
    struct error refused; /* why they cannot be compared, of one pair among several; else ALLFOLD_OK */
    allfold_comparison found;
    struct compare_place *places; /* those of --first */
    uint64_t place_count;
};

/* Rank 0: all pairs, in the order of A, and then the arrays that only A has, or only B. */
struct compare_items {
    struct input_list of[2]; /* A's arrays and B's */
    struct compare_item *items;
    uint64_t count;
    bool several; /* patterns of names were given */
};

void compare_report(struct session *session, const struct compare_items *all, double seconds);
