/* The end of exact sums on the host. */
#include "fold/exact_total.h"

#include "fold/exact_total_functions.h"
