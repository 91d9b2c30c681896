/* The passes of order statistics on the CPU: order_loops.c, once for each instruction set. */
#pragma once

#include "fold/order.h"

/* Adds to work->counts by atomics; memory of the work is the host's, and there are less than 2^32 elements. false: there is no memory. */
bool cpu_order_base(const struct order_work *work);
bool cpu_order_avx2(const struct order_work *work);
bool cpu_order_avx512(const struct order_work *work);
