# bjepa demo: files, table and page; the same bytes for any number of threads; errors; interrupts.
. "$BJ_ROOT/tests/support/cli.sh"

count() { grep -oF -e "$1" "$2" | wc -l; } # count TEXT FILE
only_files() { [ "$(ls -A "$1" | tr '\n' ' ')" = "$2" ]; } # only_files FOLDER "NAME NAME "

# ------------------------------------------------------------------------------ table and files

mkdir one
echo mine >one/other.txt
echo old >one/demo.html
run 0 demo --out one --steps 6 --seed 3 --threads 1
out_has "full-set (K = 6)"
out_has "point (K = 1)"
out_has "trajectory Energy Score, m"
out_has "min ADE (diagnostic), m"
err_has "6 steps of 64 fresh scenes each, 1 thread,"
err_has "6 of 6 steps in"
err_has "wrote one/model.safetensors"
err_has "wrote one/demo.html"
check only_files one "demo.html model.safetensors other.txt "
check grep -qx mine one/other.txt
check grep -qaF '"made_by":"bjepa demo' one/model.safetensors
cp out table

# Held-out scenes are predicted better afterwards, by both models.
check awk '/^trajectory Energy Score/ { better = $(NF-2) < $(NF-3) && $NF < $(NF-1) }
           END { exit !better }' table

# ---------------------------------------------------------------------------------- determinism

run 0 demo --out two --steps 6 --seed 3 --threads 2
check cmp out table
check cmp one/model.safetensors two/model.safetensors
check cmp one/demo.html two/demo.html
run 0 demo -o two/ --steps 6 --seed 4 --json # replaces what is there
check only_files two "demo.html model.safetensors "
check sh -c '! cmp -s one/model.safetensors two/model.safetensors'
out_has '"type": "demo"'
out_has '"seed": 4, "steps": 6, "batch": 64, "held_out": 512'
check test "$(count '"traj_es"' out)" -eq 4
if command -v python3 >/dev/null; then check python3 -m json.tool out json; fi

# ----------------------------------------------------------------------------------------- page

page=one/demo.html
for tag in html head style body main table svg figure g text; do
    check test "$(grep -oE "<$tag[ >]" "$page" | wc -l)" -eq "$(count "</$tag>" "$page")"
done
check test "$(count '<figcaption>held-out scene' "$page")" -eq 6
check test "$(count '<title>branch' "$page")" -eq 36
check test "$(count '<path class="point" d="M' "$page")" -eq 7  # six scenes and the legend
check test "$(count '<path class="future" d="M' "$page")" -eq 7
check test "$(count ' curve" d="M' "$page")" -eq 6              # two charts and the legend
check grep -qF 'bjepa demo --seed 3 --steps 6' "$page"
check sh -c "! grep -qiE '[^a-z](nan|inf)[^a-z]|<script|src=|href=' $page"
if command -v python3 >/dev/null; then
    check python3 -c 'import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])' "$page"
fi

# --------------------------------------------------------------------------------------- errors

run 2 demo --steps 0
out_empty
err_has "--steps: found '0', expected an integer from 1 to 1000000"
run 2 demo --seed minus
err_has "--seed: found 'minus'"
run 2 demo --out ""
err_has "--out: found '', expected a folder"
run 2 demo --threads -1
run 2 demo extra
err_has "unexpected argument 'extra'"
run 5 demo --out one/other.txt --steps 1
out_empty
err_has "one/other.txt: is a file, expected a folder"
run 5 demo --out missing/folder --steps 1
err_has "missing/folder: cannot create the folder: No such file or directory"
mkdir -p taken/demo.html
run 5 demo --out taken --steps 1
err_has "taken/demo.html: is not a regular file"
check only_files taken "demo.html "
mkdir closed
chmod a-w closed
if [ ! -w closed ]; then # root may write anywhere
    run 5 demo --out closed --steps 1
    err_has "closed: cannot write to the folder: Permission denied"
fi
chmod u+w closed
BJ_ISA=none run 2 demo --out never --steps 1
err_has "instruction set 'none' is not available"
check test ! -e never
# No room for the checkpoint: nothing is left behind.
code=0
(trap '' XFSZ && ulimit -f 100 && exec "$BJEPA" demo --out full --steps 1) >out 2>err || code=$?
check test "$code" -eq 5
out_empty
err_has "full/model.safetensors"
check test ! -e full

# ------------------------------------------------------------------------------------ interrupt

set -m # else background commands ignore SIGINT
for signal in INT TERM; do
    rm -f err
    "$BJEPA" demo --out stopped --steps 1000000 --threads 1 >out 2>err &
    for _ in $(seq 600); do
        grep -q training err && break
        sleep 0.1
    done
    kill -"$signal" $!
    code=0
    wait $! || code=$?
    case $signal in
    INT) check test "$code" -eq 130 ;;
    TERM) check test "$code" -eq 143 ;;
    esac
    out_empty
    err_has "bjepa demo: interrupted after"
    err_has "of 1000000 steps; no file was written"
    check test ! -e stopped
done
set +m

# ------------------------------------------------------------------------------------- terminal

if command -v script >/dev/null; then
    TERM=xterm script -qec "'$BJEPA' demo --out bar --steps 20" /dev/null >out </dev/null
    check grep -qE '\[#*\.*\] +[0-9]+ %  [0-9]+ steps/s  0:[0-9]+ left  losses' out
    check awk '{ n = split($0, part, "\r"); for (i = 1; i <= n; i++) if (length(part[i]) > 79 &&
               part[i] ~ /steps\/s/) bad = 1 } END { exit bad }' out
fi

finish
