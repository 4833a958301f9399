#include "cli.h"
#include <branchjepa/branchjepa.h>
#include "core/alloc.h"
#include "../src/low/low.h"
