# Tests campaigns/slurm.sh as Slurm runs it: an array of two tasks, one of which is stopped before its time
# limit, requeued and finished. The weights equal those of an uninterrupted campaign.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 simulate --cache t.bjc --scenes 120 --seed 3 --quiet --jobs 1
cat >two.yaml <<END
name: two
recipe: small
arms: [fullset, point]
seeds: 1
set:
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
    router_hidden: 8, decoder_hidden: 8, trunk: 8}
  train: {epochs: 40, batch: 16, warmup: 0, save_minutes: 0.002}
END
run 0 campaign two.yaml --data t.bjc --out ref --jobs 1 --quiet

# The template with its lines filled in, the program on the path, and the one Slurm command it calls.
here=$PWD
sed -e "s|^campaign=.*|campaign=$here/two.yaml|" -e "s|^data=.*|data=$here/t.bjc|" \
    -e "s|^out=.*|out=$here/array|" "$BJ_ROOT/campaigns/slurm.sh" >filled.sh
mkdir bin
ln -s "$BJEPA" bin/bjepa
printf '#!/bin/sh\necho "$@" >>%s/requeued\n' "$here" >bin/scontrol
chmod +x bin/scontrol
task() { # task NUMBER: of an array 3-4, numbered as somebody may number it
    PATH=$here/bin:$PATH SLURM_ARRAY_JOB_ID=77 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=3 \
        SLURM_ARRAY_TASK_ID=$1 exec bash filled.sh
}

(unset SLURM_ARRAY_TASK_COUNT && bash filled.sh >out 2>err)
check [ $? -ne 0 ]
err_has "this script belongs to sbatch"

(task 3) >first.log 2>&1 &
first=$!
for i in $(seq 1200); do
    [ -n "$(find array/runs -path '*ckpt/last/model.safetensors' 2>/dev/null)" ] && break
    sleep 0.05
done
kill -TERM "$first"
wait "$first"
check [ $? -eq 143 ]
check [ "$(cat requeued)" = "requeue 77_3" ]

(task 4) >second.log 2>&1
check [ $? -eq 0 ]
(task 3) >first.log 2>&1
check [ $? -eq 0 ]
check [ "$(wc -l <requeued)" -eq 1 ]

run 0 campaign status array
for arm in fullset point; do
    for file in best/model last/model last/state; do
        check cmp "ref/runs/$arm/seed-0/ckpt/$file.safetensors" \
            "array/runs/$arm/seed-0/ckpt/$file.safetensors"
    done
done
finish
