/* Lists the options of all commands. */
#pragma once

#include "cli/options.h"

extern const struct option option_rows[];
