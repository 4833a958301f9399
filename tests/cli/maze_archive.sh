# Tests bjepa maze emit, reveal and verify: successors are added only to emissions with the right hash.
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
out_has "e.safetensors: its digest matches s.json"

# Other emissions, or another hash than announced: refused, and nothing is written.
run 4 maze reveal e.safetensors walk-medium-v0.npz -o t.json --sha256 "${hash%?}x"
err_has "expected "
check test ! -e t.json
run 4 maze reveal e.safetensors walk-medium-v0.npz --maze large -o t.json
err_has "the emissions belong to maze 'medium' with 26 cells, expected 'large' with 46"
printf 'x' | dd of=e.safetensors bs=1 seek="$(($(wc -c <e.safetensors) - 5))" conv=notrunc status=none
run 4 maze verify s.json e.safetensors
err_has "according to s.json"
run 3 maze reveal latents.safetensors walk-medium-v0.npz -o t.json
err_has "latents.safetensors: format is 'not stated'"
run 3 maze emit latents.safetensors --maze large -o t.safetensors
run 4 maze verify s.json s.json
run 5 maze emit none.safetensors --maze medium -o t.safetensors
run 2 maze emit latents.safetensors -o t.safetensors
run 2 maze reveal e.safetensors

# Of runs: contexts that follow from the maze, before the data is looked at: here it is gone.
tiny="--set model.embed=8 --set model.latent=12 --set model.proj_hidden=8 --set model.atom_hidden=8
    --set model.router_hidden=8 --set train.batch=8 --set train.updates=5 --set train.epochs=2
    --set gate.std=0 --set gate.low_std=1 --set gate.rank=0 --set gate.separated=0"
run 0 train --data walk-medium-v0.npz --arm maze-branch --out branch -q $tiny
run 0 train --data walk-medium-v0.npz --arm maze-standard --out standard -q $tiny
mkdir -p away
mv walk-medium-v0.npz away/
run 0 maze emit branch --point standard -o a.safetensors
err_empty
cp a.safetensors again.safetensors
run 0 maze emit branch --point standard --archive a -o a.safetensors
check cmp a.safetensors again.safetensors
run 0 maze emit branch --archive b -o b.safetensors
run 0 maze emit branch --point standard --cells 1,4,1 -o c.safetensors
run 2 maze emit branch --cells 1,26 -o d.safetensors
err_has "no cell 26; maze 'medium' has 26 cells"
run 2 maze emit branch --cells 1,x -o d.safetensors
err_has "found '1,x', expected cells"
run 2 maze emit standard --point branch -o d.safetensors
err_has "the model has 8 outputs, expected one"
run 2 maze emit latents.safetensors --maze medium --cells 1 -o d.safetensors
err_has "need a run"
check test ! -e d.safetensors
data=away/walk-medium-v0.npz
run 0 maze reveal a.safetensors $data -o a.json
for cell in 5 7 9 11 14; do # the five cells of the medium maze with three successors
    check grep -qE "^ +$cell +" out
done
run 0 maze reveal b.safetensors $data -o b.json
check test "$(grep -cE '^ +[0-9]+ +[0-9]+ +[0-9]+ ' out)" -eq 4
run 0 maze reveal c.safetensors $data -o c.json
check test "$(grep -cE '^ +1 +2 +' out)" -eq 2
if [ -x "$BJ_ROOT/.venv/bin/python" ]; then
    check "$BJ_ROOT/.venv/bin/python" - <<'END'
import json
def size(name):
    with open(name, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        return json.loads(f.read(n))
a, b = size("a.safetensors"), size("b.safetensors")
assert a["point_latents"]["shape"] == [26, 12] and a["candidates"]["shape"] == [5, 8, 12]
assert a["__metadata__"]["archive"] == "A" and a["__metadata__"]["point_arm"] == "maze-standard"
assert "point" not in b and b["candidates"]["shape"] == [4, 8, 12]
END
fi

# The picture of what was revealed.
run 0 maze show c.json -o c.svg
check test "$(grep -c 'class="context"' c.svg)" -eq 3
check test "$(grep -c 'class="point"' c.svg)" -eq 3
check test "$(grep -c 'class="successor"' c.svg)" -eq 5
active=$(grep -oE '\[[0-9]+,[-0-9.e]+,[0-9.e-]+,[01]\]' c.json | awk -F, '$3 >= 0.01' | wc -l)
check test "$(grep -c 'class="candidate"' c.svg)" -eq "$active"
if command -v xmllint >/dev/null; then check xmllint --noout c.svg; fi
run 2 maze show c.json -o c.html
err_has "expected an output name that ends in .svg"
sed 's/"cell":4/"cell":44/' c.json >bad.json
run 3 maze show bad.json -o bad.svg
err_has "bad.json: context 1: no cell"
check test ! -e bad.svg
finish
