/* Stands for the tests of this folder where configure found no C++ compiler for them or was told to leave them out. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

int main(void)
{
    tap_skip_all("this build has none: configure found no C++17 compiler, or was told --disable-emulation");
    return tap_done();
}
