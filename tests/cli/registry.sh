# Tests that a campaign with a damaged registry can be resumed: the states of the runs are read from
# the run folders.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"

check small_campaign camp point
sums() { find camp/runs -name '*.safetensors' -exec sha256sum {} + | sort; }
before=$(sums)
run 2 campaign grid.yaml --out camp --rebuild-registry
err_has "--rebuild-registry needs --resume"

for damage in "printf 'not a database, but longer than the header of one' >FILE" \
    "dd if=/dev/zero of=FILE bs=512 count=8 conv=notrunc status=none" \
    "truncate -s 5000 FILE"; do
    cp camp/registry.sqlite kept.sqlite
    eval "${damage/FILE/camp/registry.sqlite}"
    run 3 campaign --out camp --resume --jobs 1 --threads 1 -q
    err_has "--rebuild-registry"
    run 3 campaign status camp
    err_has "--rebuild-registry"
    run 0 campaign --out camp --resume --rebuild-registry --jobs 1 --threads 1 -q
    check test -e camp/registry.sqlite.damaged
    run 0 campaign status camp
    out_has "2 runs: 2 done"
    check test "$(sums)" = "$before"
    rm camp/registry.sqlite.damaged
    cp kept.sqlite camp/registry.sqlite
done
finish
