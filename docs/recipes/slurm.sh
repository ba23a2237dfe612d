#!/usr/bin/env bash
# A plan as a job array of Slurm: a task is a shard. From a folder that all nodes share:
#
#   job=$(SEED=$(date +%Y%m%d) sbatch --parsable slurm.sh)
#   sbatch --dependency="afterany:$job" --wrap 'mmaprobe merge shards --out night --junit junit.xml'
#
# The second job is red where a shard is missing, a vector differs or less was compared than the plan demands.
#SBATCH --job-name=mmaprobe
#SBATCH --array=0-15
#SBATCH --gpus=1
#SBATCH --time=01:30:00
#SBATCH --output=mmaprobe-%A-%a.log
set -euo pipefail

: "${DEVICE:=cuda:0}" "${REFERENCE:=model:sm_90a}" "${PLAN:=nightly}" "${BUDGET:=60}" "${SHARDS:=shards}"
: "${SEED:?the same number for all shards}"

mmaprobe validate "$DEVICE" "$REFERENCE" --plan "$PLAN" --seed "$SEED" --budget "$BUDGET" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out "$SHARDS"
