# bjepa maze emit, reveal and verify: nothing is added to emissions but by their hash.
. "$BJ_ROOT/tests/support/cli.sh"

check "$TEST_ARCHIVE" latents latents.safetensors
check "$TEST_DATASET" write walk-medium-v0.npz
run 0 maze emit latents.safetensors --maze medium -o e.safetensors
err_empty
hash=$(cut -c1-64 out)
check test ${#hash} -eq 64
if command -v sha256sum >/dev/null; then
    check test "$(sha256sum <e.safetensors | cut -c1-64)" = "$hash"
fi
run 0 maze emit latents.safetensors --maze medium -o e.safetensors --json
out_has "\"sha256\": \"$hash\""

run 0 maze reveal e.safetensors walk-medium-v0.npz -o s.json --sha256 "$hash"
out_has "emissions  $hash"
check grep -qE '^ +1 +2 +1 +50\.0% +75\.0% +1$' out
check grep -qE '^coverage +75\.0%, by the point 25\.0%$' out
check grep -qF "\"emissions_sha256\":\"$hash\"" s.json
run 0 maze reveal e.safetensors walk-medium-v0.npz -o s.json --json
out_has '"coverage": 0.75, "point_coverage": 0.25'
run 0 maze verify s.json e.safetensors
out_has "e.safetensors: the emissions that s.json names"

# Other emissions, or another hash than announced: refused, and nothing is written.
run 4 maze reveal e.safetensors walk-medium-v0.npz -o t.json --sha256 "${hash%?}x"
err_has "expected the announced"
check test ! -e t.json
run 4 maze reveal e.safetensors walk-medium-v0.npz --maze large -o t.json
err_has "emissions in maze 'medium' of 26 cells, expected 'large' of 46"
printf 'x' | dd of=e.safetensors bs=1 seek="$(($(wc -c <e.safetensors) - 5))" conv=notrunc status=none
run 4 maze verify s.json e.safetensors
err_has "as named in s.json"
run 3 maze reveal latents.safetensors walk-medium-v0.npz -o t.json
err_has "latents.safetensors: format is 'not stated'"
run 3 maze emit latents.safetensors --maze large -o t.safetensors
run 4 maze verify s.json s.json
run 5 maze emit none.safetensors --maze medium -o t.safetensors
run 2 maze emit latents.safetensors -o t.safetensors
run 2 maze reveal e.safetensors

finish
