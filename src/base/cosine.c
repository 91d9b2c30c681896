/* The cosine of an angle in degrees, in numbers of twice the precision of f64. The angle is brought to 0 to 45 degrees exactly, and multiplied by
   pi / 180 to 100 bits or more; there follows Taylor's series of the sine or the cosine. */
#include "base/cosine.h"

#include <math.h>

struct twin {
    double high, low; /* the sum of both: low is at most half a unit in the last place of high */
};

static struct twin twin_sum(double a, double b) /* |a| >= |b|, or a is 0 */
{
    const double sum = a + b;
    return (struct twin){sum, b - (sum - a)};
}

static struct twin twin_add(struct twin a, struct twin b)
{
    const double sum = a.high + b.high, part = sum - a.high, error = (a.high - (sum - part)) + (b.high - part);
    return twin_sum(sum, error + (a.low + b.low));
}

static struct twin twin_multiply(struct twin a, struct twin b)
{
    const double product = a.high * b.high, error = fma(a.high, b.high, -product);
    return twin_sum(product, error + (a.high * b.low + a.low * b.high));
}

static struct twin twin_divide(struct twin a, double b)
{
    const double quotient = a.high / b, rest = fma(-quotient, b, a.high);
    return twin_sum(quotient, (rest + a.low) / b);
}

/* 1 - t^2 / 2! + t^4 / 4! ..., or t - t^3 / 3! + t^5 / 5! ..., |t| below 0.79: what is left out is below 2^-108. */
static double series(struct twin t, int first)
{
    const struct twin square = twin_multiply(t, t), negative = {-square.high, -square.low};
    struct twin terms[15], sum = {0, 0};
    terms[0] = first == 0 ? (struct twin){1, 0} : t;
    for (int i = 1; i < 15; i++)
        terms[i] = twin_divide(twin_multiply(terms[i - 1], negative), (double)((2 * i + first) * (2 * i + first - 1)));
    for (int i = 15; i-- > 0;)
        sum = twin_add(terms[i], sum);
    return sum.high + sum.low;
}

double cosine_of_degrees(double degrees)
{
    const struct twin radian = {0x1.1df46a2529d39p-6, 0x1.5c1d8becdd291p-62}; /* pi / 180 */
    double angle = fmod(fabs(degrees), 360.0); /* all steps are exact */
    if (angle > 180.0)
        angle = 360.0 - angle;
    const double sign = angle > 90.0 ? -1.0 : 1.0;
    if (angle > 90.0)
        angle = 180.0 - angle;
    const double rest = angle > 45.0 ? 90.0 - angle : angle;
    const double value = series(twin_multiply((struct twin){rest, 0}, radian), angle > 45.0);
    return value != 0.0 ? sign * value : 0.0 * rest;
}
