/* The end of exact sums on the host. */
#include "fold/exact_total.h"

#include "fold/exact_total_functions.h"

#include <string.h>

bool exact_total_is_zero(const struct exact_total *total) { return total_top(total) < 0; }

static int digits_of(const struct exact_total *total) { return total_top(total) / 32 + 1; }
static uint32_t digit_of(const struct exact_total *total, int i) { return i >= 0 && i < total->length ? total->digits[i] : 0; }

struct exact_total exact_total_product(const struct exact_total *a, const struct exact_total *b)
{
    const int a_digits = digits_of(a), b_digits = digits_of(b);
    struct exact_total product = total_of_length(a_digits + b_digits);
    memset(product.digits, 0, (size_t)product.length * sizeof *product.digits);
    product.lowest = a->lowest + b->lowest;
    product.negative = a->negative != b->negative;
    for (int i = 0; i < a_digits; i++) {
        uint64_t over = 0;
        for (int j = 0; j <= b_digits; j++) {
            over += (uint64_t)digit_of(a, i) * digit_of(b, j < b_digits ? j : -1) + product.digits[i + j];
            product.digits[i + j] = (uint32_t)over;
            over >>= 32;
        }
    }
    return product;
}

struct exact_total exact_total_difference(const struct exact_total *a, const struct exact_total *b)
{
    const int32_t lowest = a->lowest < b->lowest ? a->lowest : b->lowest;
    const int a_at = (a->lowest - lowest) / 32, b_at = (b->lowest - lowest) / 32;
    const int a_end = a_at + digits_of(a), b_end = b_at + digits_of(b);
    struct exact_total difference = total_of_length(a_end > b_end ? a_end : b_end);
    int64_t borrow = 0;
    difference.lowest = lowest;
    for (int i = 0; i < difference.length; i++) {
        borrow += (int64_t)digit_of(a, i - a_at) - digit_of(b, i - b_at);
        difference.digits[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    return difference;
}

/* Takes the divisor, of n digits whose highest bit is set, from the remainder, of n + 1, as often as it can: at most 2^32 - 1 times. */
static uint32_t next_digit(uint32_t *remainder, const uint32_t *divisor, int n)
{
    const uint64_t guess = ((uint64_t)remainder[n] << 32 | remainder[n - 1]) / divisor[n - 1];
    uint64_t digit = guess < UINT32_MAX ? guess : UINT32_MAX, over = 0; /* too large by 2 at most */
    int64_t borrow = 0;
    for (int i = 0; i < n; i++) {
        over += digit * divisor[i];
        borrow += (int64_t)remainder[i] - (uint32_t)over;
        remainder[i] = (uint32_t)borrow;
        borrow >>= 32;
        over >>= 32;
    }
    int64_t highest = (int64_t)remainder[n] - (int64_t)over + borrow;
    for (; highest < 0; digit--) {
        uint64_t carry = 0;
        for (int i = 0; i < n; i++) {
            carry += (uint64_t)remainder[i] + divisor[i];
            remainder[i] = (uint32_t)carry;
            carry >>= 32;
        }
        highest += (int64_t)carry;
    }
    remainder[n] = (uint32_t)highest;
    return (uint32_t)digit;
}

void exact_total_quotient(struct exact_total *a, const struct exact_total *b)
{
    enum { MORE = 5 }; /* digits of the quotient, at least, but for one that may be 0 */
    const int n = digits_of(b), digits = digits_of(a), zeros = digits < n + MORE ? n + MORE - digits : 0;
    const int shift = 32 * n - 1 - total_top(b);
    uint32_t divisor[EXACT_TOTAL_DIGITS], remainder[EXACT_TOTAL_DIGITS + 1] = {0}, quotient[EXACT_TOTAL_DIGITS];
    for (int i = 0; i < n; i++)
        divisor[i] = total_word(b, 32 * i - shift);
    for (int i = digits - 1; i >= -zeros; i--) {
        memmove(remainder + 1, remainder, (size_t)n * sizeof *remainder);
        remainder[0] = i >= 0 ? digit_of(a, i) : 0;
        quotient[i + zeros] = next_digit(remainder, divisor, n);
    }
    a->length = digits + zeros;
    memcpy(a->digits, quotient, (size_t)a->length * sizeof *quotient);
    a->lowest -= 32 * zeros + b->lowest - shift;
    for (int i = 0; i <= n; i++)
        a->sticky = a->sticky || remainder[i] != 0;
}
