/* Stands for the tests of this folder where configure found no C++ compiler for them. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

int main(void)
{
    tap_skip_all("configure found no C++17 compiler");
    return tap_done();
}
