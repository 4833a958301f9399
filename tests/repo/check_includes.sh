# Tests every #include against the table in docs/ARCHITECTURE.md, which lists the allowed folders.
#
# A folder may always include itself, the C library and the system. The second column of the table lists,
# in backquotes, what else it may include: folders of src/, `branchjepa` (the public header) and the
# libraries `yyjson`, `snappy`, `zstd`, `zlib`, `yaml` and `sqlite3`. The check reads only the
# text, so it includes code inside #if.
# The check first runs on a small tree with planted violations and must find exactly these.

# violations ROOT: prints a line for each include that is not allowed and for each table row without folder.
violations() (
    cd "$1" || exit 1
    files=$(find src cli -name '*.[ch]' | sort)
    folders=$(find src -mindepth 1 -maxdepth 1 -type d -exec sh -c 'ls -A "$1" | grep -q .' _ {} \; \
        -print | sed 's|^src/||'; echo cli)
    awk -v folders="$folders" '
        function folder_of(path, part) {
            split(path, part, "/")
            return part[1] == "src" ? part[2] : part[1]
        }
        function exists(path, line) {
            if ((getline line < path) < 0) return 0
            close(path)
            return 1
        }
        # Returns the folder or library that an include names, or "" for a system header.
        function named(text, quoted, file, part) {
            if (text ~ /yyjson\.h$/) return "yyjson"
            if (text == "snappy-c.h") return "snappy"
            if (text ~ /^(zstd|zlib|yaml|sqlite3)\.h$/) return substr(text, 1, length(text) - 2)
            if (split(text, part, "/") < 2) {
                if (!quoted) return ""
                sub(/[^\/]*$/, "", file)
                return exists(file text) ? "self" : "a file that is not in its own folder"
            }
            if (quoted) return part[1]
            return part[1] == "branchjepa" || (part[1] in row) ? part[1] : ""
        }

        FILENAME ~ /\.md$/ {
            if ($0 ~ /^\| folder \| may include \|/) { table = 1; next }
            if (!table || $0 !~ /^\|/) { table = 0; next }
            split($0, cell, "|")
            folder = cell[2]
            gsub(/[` ]/, "", folder)
            if (folder ~ /^-+$/) next
            row[folder] = 1
            while (match(cell[3], /`[^`]+`/)) {
                allowed[folder, substr(cell[3], RSTART + 1, RLENGTH - 2)] = 1
                cell[3] = substr(cell[3], RSTART + RLENGTH)
            }
            next
        }

        /^[ \t]*#[ \t]*include[ \t]*["<]/ {
            folder = folder_of(FILENAME)
            if (!match($0, /["<][^">]+[">]/)) next
            quoted = substr($0, RSTART, 1) == "\""
            text = substr($0, RSTART + 1, RLENGTH - 2)
            what = named(text, quoted, FILENAME)
            if (what == "" || what == "self" || what == folder || (folder, what) in allowed) next
            printf "%s:%d: includes \"%s\", but %s may not include %s\n", FILENAME, FNR, text,
                folder, what
        }

        END {
            n = split(folders, list, "\n")
            for (i = 1; i <= n; i++) {
                present[list[i]] = 1
                if (!(list[i] in row)) printf "%s: no row in docs/ARCHITECTURE.md\n", list[i]
            }
            for (folder in row)
                if (!(folder in present)) printf "docs/ARCHITECTURE.md: no folder %s\n", folder
        }' docs/ARCHITECTURE.md $files
)

# ------------------------------------------------------------------------------ planted violations

mkdir -p planted/docs planted/src/low planted/src/high planted/src/extra planted/cli
cat >planted/docs/ARCHITECTURE.md <<'END'
| folder | may include | why |
|---|---|---|
| `low` | `branchjepa` | floor |
| `high` | `low`, `yyjson`, `zlib`, `zstd`, `snappy`, `yaml`, `sqlite3` | `extra` is for others |
| `cli` | `branchjepa` | |
| `gone` | | |
END
touch planted/src/low/low.h planted/src/high/high.h planted/cli/cli.h
cat >planted/src/low/low.c <<'END'
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
END
cat >planted/src/high/high.c <<'END'
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
END
echo '#include "low/low.h"' >planted/src/extra/extra.h
cat >planted/cli/main.c <<'END'
#include "cli.h"
#include <branchjepa/branchjepa.h>
#include "core/alloc.h"
#include "../src/low/low.h"
END
sort >expected <<'END'
cli/main.c:3: includes "core/alloc.h", but cli may not include core
cli/main.c:4: includes "../src/low/low.h", but cli may not include ..
docs/ARCHITECTURE.md: no folder gone
extra: no row in docs/ARCHITECTURE.md
src/extra/extra.h:1: includes "low/low.h", but extra may not include low
src/high/high.c:9: includes "extra/extra.h", but high may not include extra
src/low/low.c:6: includes "high/high.h", but low may not include high
src/low/low.c:7: includes "nowhere.h", but low may not include a file that is not in its own folder
src/low/low.c:8: includes "zlib.h", but low may not include zlib
src/low/low.c:9: includes "zstd.h", but low may not include zstd
src/low/low.c:10: includes "snappy-c.h", but low may not include snappy
src/low/low.c:11: includes "yaml.h", but low may not include yaml
src/low/low.c:12: includes "sqlite3.h", but low may not include sqlite3
END
violations planted | sort >found
if ! diff expected found; then
    echo "the check itself is wrong: expected < , found >" >&2
    exit 1
fi

# ------------------------------------------------------------------------------------- this tree

violations "$BJ_ROOT" >found
if [ -s found ]; then
    cat found >&2
    exit 1
fi
echo "includes: $(find "$BJ_ROOT/src" "$BJ_ROOT/cli" -name '*.[ch]' | wc -l) files follow the table"
