# SPDX-License-Identifier: Apache-2.0
# Ways to start it: tests/cli/packaging.sh checks these files.
EXTRA_DIST += packaging/Containerfile packaging/kubernetes/job.yaml packaging/kubernetes/mpijob.yaml \
	packaging/slurm/by-hand.sbatch packaging/slurm/one-job.sbatch
