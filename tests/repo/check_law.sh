# Tests that code that trains or predicts cannot open the law of simulated futures. Only the simulated
# world, the exams of `bjepa truth`, and the commands that show laws, reports and figures may mention it.
set -eu

# mentions ROOT: prints a line for each place that mentions functions or files of the law without permission
mentions() (
    cd "$1"
    find src cli -name '*.[ch]' ! -path 'src/world/*' ! -path 'src/truth/*' ! -path 'cli/*truth*' \
        ! -path cli/cmd_world.c ! -path cli/cmd_simulate.c ! -path cli/cmd_benchmark.c ! -path 'cli/report_*' ! -path cli/cmd_report.c \
        ! -path cli/cmd_view.c ! -path cli/cmd_demo.c ! -path cli/plot_results.c -exec grep -nE \
        '(^|[^[:alnum:]_])bj_(law_|exam_|world_redraw)|law\.safetensors|"(world|truth)/' /dev/null {} + || true
)

# Tests that the check finds planted violations and nothing else.
mkdir -p planted/src/train planted/src/world planted/cli
echo 'bj_status s = bj_law_open(&law, path, err); /* bj_lawful is another name */' >planted/src/train/a.c
echo '#include "world/law.h"' >planted/src/train/b.c
echo 'open("x.law.safetensors");' >planted/cli/cmd_train.c
echo 'int bj_flaw_open; int bj_lawful;' >planted/src/train/c.c
echo 'bj_law_free(law);' >planted/src/world/a.c
if [ "$(mentions planted | wc -l)" -ne 3 ]; then
    echo "the check itself is wrong, it found:" >&2
    mentions planted >&2
    exit 1
fi

found=$(mentions "$BJ_ROOT")
if [ -n "$found" ]; then
    echo "these may not reach the law of the futures:" >&2
    printf '%s\n' "$found" >&2
    exit 1
fi
echo "law: out of reach of the rest"
