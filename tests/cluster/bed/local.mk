# SPDX-License-Identifier: Apache-2.0
# These boot their own kernels and take minutes: `bootstrap cluster` and `bootstrap experiment` run
# them, not `make check`.
EXTRA_DIST += tests/cluster/experiment.sh tests/cluster/guests_nfs.sh tests/cluster/guests_nvme.sh tests/cluster/guests_rdma.sh \
	tests/cluster/gradients.sh tests/cluster/io.sh tests/cluster/lmdb.sh tests/cluster/perftest.sh tests/cluster/rdma.sh tests/cluster/studies.sh \
	tests/cluster/bed/README.md tests/cluster/bed/agent.py tests/cluster/bed/bed.sh \
	tests/cluster/bed/by_epoch.py tests/cluster/bed/guest.sh \
	tests/cluster/bed/kernels.sh tests/cluster/bed/over_time.py tests/cluster/bed/pictures.gp \
	tests/cluster/bed/qemu.sh tests/cluster/bed/qemu_init.sh tests/cluster/bed/sets.sh \
	tests/cluster/bed/uml.sh tests/cluster/bed/uml_init.sh tests/cluster/bed/whole_registers.c \
	tests/cluster/bed/wire_over_time.py
