#include "low/low.h"
#include <yyjson.h>
#include <zlib.h>
#include <zstd.h>
#include <snappy-c.h>
#include <yaml.h>
#include <sqlite3.h>
#if 0
#include "extra/extra.h"
#endif
