/* Writes numbers as text that reads back as the same number. */
#pragma once

#include "base/base.h"

struct number_text {
    char text[40];
};

/* The shortest decimal that reads back as the same double, spelled as Python spells it ("0.1", "3.0", "1e+16"); nan,
   inf, -inf. */
struct number_text number_shortest(double number);

/* A value: as number_shortest, or an integer's digits. */
struct number_text number_value(allfold_value value);

/* The exact hexadecimal form ("0x1.8p+1"; nan, inf, -inf). */
struct number_text number_hex(double number);

/* A rate or a size for people, in units of thousands: "1.36 GB". */
struct number_text number_bytes(double bytes);
