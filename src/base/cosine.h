/* The cosine of an angle in degrees. */
#pragma once

/* Rounded to nearest but for angles whose cosine is all but halfway between two numbers, and then to one of the two; exact at multiples of
   60 and 90 degrees. The same on all machines. NaN for what is not finite. */
double cosine_of_degrees(double degrees);
