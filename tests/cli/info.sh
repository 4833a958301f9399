# Tests bjepa info: the paper's parameter counts, as text and as JSON.
. "$BJ_ROOT/tests/support/cli.sh"

row() { # row TITLE PAPER POINT OUTPUT_ONLY
    awk -v title="$1" -v want="$2 $3 $4" '
        !found && index($0, title) == 1 { $0 = substr($0, length(title) + 1); found = $1 " " $2 " " $3 }
        END { exit found != want }' out
    verdict $? "row '$1' is not $2 $3 $4"
}

run 0 info
err_empty
row "encoder" 1,465,600 1,465,600 1,465,600
row "downstream " 3,608,958 3,608,828 3,608,958
row "total" 5,074,558 5,074,428 5,074,558
row "atoms + router" 3,284,742 3,284,612 658,182

run 0 info --arch paper
out_has "5,074,558"
out_has "router          512 - 256 - 6"
out_has "decoder         512 - 512 - 120"
out_lacks "5,074,428"
run 0 info --arch=point
out_has "5,074,428"
out_has "512 - 3204 - 512"
out_lacks "router          512"
run 0 info --arch outputonly
out_has "5,074,558"
out_has "trunk 512 - 2180"

# Mazes: every predictor has the parameters of eight branches and their router, within 0.1 %.
run 0 info
awk '$1 == "downstream" && ++n == 2 {
    for (i = 2; i <= 6; i++) { gsub(",", "", $i); if ($i < 4331545 || $i > 4340215) exit 1 } seen = 1 }
    END { exit !seen }' out
verdict $? "predictors of mazes differ in size"
run 0 info --arch variational
out_has "generator       544 - 3294 - 512"

run 0 info --json
out_has '"schema": 1, "type": "info"'
check test "$(grep -o '"name"' out | wc -l)" -eq 8
check test "$(grep -o '"total": 5074558' out | wc -l)" -eq 2
out_has '"total": 5074428'
out_has '"atoms_router": 3284742'
out_has '"atoms_router": 3284612'
run 0 info --json --arch point
check test "$(grep -o '"name"' out | wc -l)" -eq 1
out_has '"atom_hidden": 3204'

run 2 info --arch papr
out_empty
err_has "--arch: found 'papr', expected paper|point|outputonly|branch|standard|fused|variational|codebook; did you mean 'paper'?"
run 2 info --arhc paper
err_has "did you mean '--arch'?"
run 2 info --arch
err_has "--arch needs a value"
run 2 info --json=yes
err_has "--json takes no value, found 'yes'"
run 5 info nowhere
err_has "nowhere: cannot open"
run 2 info one two
err_has "unexpected argument 'two'"

# Flag before variable before default.
export BJEPA_ARCH=point
run 0 info
out_has "point:"
run 0 info --arch paper
out_has "paper:"
BJEPA_ARCH=pont
run 2 info
err_has "BJEPA_ARCH: found 'pont'"

finish
