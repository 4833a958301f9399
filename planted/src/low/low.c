#include <stdio.h>
#include <sys/mman.h>
#include <branchjepa/branchjepa.h>
#include "low/low.h"
#include "low.h"
#  include "high/high.h"
#include "nowhere.h"
#include <zlib.h>
#include <zstd.h>
#include <snappy-c.h>
#include <yaml.h>
#include <sqlite3.h>
