/* The table of all commands' options. */
#pragma once

#include "cli/options.h"

extern const struct option option_rows[];
