#!/bin/bash
# Runs a campaign as a Slurm job array in which every task trains its share of the runs. This is a template:
# fill in the five lines marked with <--, then run
#
#   sbatch slurm.sh
#
# Submit it again, or let Slurm requeue it, until `bjepa campaign status` shows that all runs are done.
# Finished runs are not repeated, and interrupted runs resume with the same result to the last bit. All
# nodes must have access to the folder.
#
#SBATCH --job-name=bjepa
#SBATCH --array=0-7                    # <-- one task per share of the runs, counted from 0
#SBATCH --cpus-per-task=16             # <-- shared by the runs of a task
#SBATCH --mem=32G
#SBATCH --time=24:00:00                # <--
#SBATCH --signal=B:TERM@300            # 5 minutes before the limit, enough to save everything
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=bjepa-%A_%a.log

campaign=$HOME/campaigns/paper-av2.yaml # <-- the campaign
data=$HOME/data/train.bjc               #     and its cache
out=$HOME/runs/paper-av2                # <-- the output folder

# All tasks must divide the campaign in the same way, so the number of shares is the size of the array.
shards=${SLURM_ARRAY_TASK_COUNT:?this script belongs to sbatch}
shard=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))

# Runs in the background, so that bash receives the signal and passes it on.
bjepa campaign "$campaign" --data "$data" --out "$out" --resume --shard "$shard/$shards" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # the trap ended the wait, but the campaign is still running
    wait "$child"
    code=$?
done

# Exit code 143 means that the campaign was stopped before the time limit and is not finished.
if [ "$code" -eq 143 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
