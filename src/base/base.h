/* The base of every part of the program. */
#pragma once

#include "base/error.h"
#include "base/range.h"
#include "base/types.h"
