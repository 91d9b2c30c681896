/* The parts of the command compare: compare.c does the work, compare_report.c prints. */
#pragma once

#include "cli/session.h"
#include "core/compare.h"

/* Two arrays of one name, on rank 0, and what is found of them. */
struct compare_item {
    struct array_info a, b;
    struct error refused; /* why they cannot be compared, of one pair among several; else ALLFOLD_OK */
    allfold_comparison found;
    struct compare_place *places; /* those of --first */
    uint64_t place_count;
};

/* Rank 0: all pairs, in the order of A, and the arrays that only one side has. */
struct compare_items {
    struct compare_item *items;
    uint64_t count;
    struct array_info *only[2]; /* in A, in B */
    uint64_t only_count[2];
    bool several; /* patterns of names were given */
};

void compare_report(struct session *session, const struct compare_items *all, double seconds);
