#!/bin/bash
# A campaign as a Slurm job array: every task trains its share of the runs. A template: fill in the
# five lines marked with <--, then
#
#   sbatch slurm.sh
#
# Submit it again, or let Slurm requeue it, until `bjepa campaign status` shows that all is done: what
# is finished is not repeated, and what was interrupted goes on where it stopped, with the same result
# to the last bit. The folder must be one that all nodes see.
#
#SBATCH --job-name=bjepa
#SBATCH --array=0-7                    # <-- one task for each share of the runs, counted from 0
#SBATCH --cpus-per-task=16             # <-- shared by the runs of a task
#SBATCH --mem=32G
#SBATCH --time=24:00:00                # <--
#SBATCH --signal=B:TERM@300            # 5 minutes before the limit: enough to save everything
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=bjepa-%A_%a.log

campaign=$HOME/campaigns/paper-av2.yaml # <-- the campaign
data=$HOME/data/train.bjc               #     and its cache
out=$HOME/runs/paper-av2                # <-- where everything goes

# All tasks must cut the campaign alike, so the number of shares comes from the array itself.
shards=${SLURM_ARRAY_TASK_COUNT:?this script belongs to sbatch}
shard=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))

# In the background, so that bash hears the signal and passes it on.
bjepa campaign "$campaign" --data "$data" --out "$out" --resume --shard "$shard/$shards" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # the trap ended the wait, not the campaign
    wait "$child"
    code=$?
done

# 143: stopped in front of the time limit, with something left to do.
if [ "$code" -eq 143 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
