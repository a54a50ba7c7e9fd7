#!/usr/bin/env bash
# The shards of a plan as a Slurm array. From a folder that all nodes see:
#
#   ragworth calls plan --shards 64 -o plan evaluate WORKSPACE
#   sbatch --array=0-63 slurm-shards.sh
#   ragworth calls merge plan WORKSPACE/calls.sqlite
#
# A job that is killed or runs out of time goes on where it was: submit the same array again. Finished shards make no
# calls.
#SBATCH --job-name=ragworth
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=32G
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail
ragworth calls run-shard plan "$SLURM_ARRAY_TASK_ID" -M hf:MODEL_FOLDER -O device=cuda --quiet
