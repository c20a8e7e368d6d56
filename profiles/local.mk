# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += profiles/profiles.c profiles/profiles.h
nodist_libiobench_a_SOURCES += profiles/built-in.c

# In the order of `iobench list profiles`.
PROFILES = \
	profiles/gpu/v100.ini profiles/gpu/a100.ini profiles/gpu/h100.ini profiles/gpu/h200.ini \
	profiles/gpu/b200.ini profiles/gpu/gb200.ini profiles/gpu/gb300.ini \
	profiles/gpu/mi355x.ini \
	profiles/network/resnet50.ini profiles/network/unet3d.ini profiles/network/retinanet.ini \
	profiles/network/dlrm.ini profiles/network/flux.ini profiles/network/llama3.1-8b.ini \
	profiles/network/llama3.1-70b.ini profiles/network/llama3.1-405b.ini \
	profiles/network/llama-1t.ini \
	profiles/node/dgx1-v100.ini profiles/node/dgx2h-v100.ini profiles/node/dgx-a100.ini \
	profiles/node/dgx-h100.ini profiles/node/dgx-h200.ini profiles/node/xe9680l-b200.ini \
	profiles/node/gb200-tray.ini profiles/node/gb300-tray.ini \
	profiles/storage/nvme-9550.ini profiles/storage/nvme-pm1743.ini profiles/storage/nfs-100g.ini \
	profiles/storage/parallel-k3000.ini profiles/storage/3fs-180.ini profiles/storage/object-100g.ini \
	profiles/fabric/edr.ini profiles/fabric/hdr.ini profiles/fabric/ndr.ini profiles/fabric/xdr.ini \
	profiles/fabric/ethernet-25g.ini profiles/fabric/ethernet-100g.ini \
	profiles/workload/unet3d-a100.ini profiles/workload/unet3d-h100.ini profiles/workload/unet3d-b200.ini \
	profiles/workload/resnet50-a100.ini profiles/workload/resnet50-h100.ini profiles/workload/cosmoflow-a100.ini \
	profiles/workload/cosmoflow-h100.ini profiles/workload/retinanet-b200.ini profiles/workload/retinanet-mi355.ini \
	profiles/workload/flux-b200.ini profiles/workload/dlrm-b200.ini

nobase_dist_pkgdata_DATA = $(PROFILES)
EXTRA_DIST += profiles/embed.sh
CLEANFILES += profiles/built-in.c

profiles/built-in.c: $(PROFILES) profiles/embed.sh
	$(AM_V_GEN)$(MKDIR_P) profiles && $(SHELL) $(srcdir)/profiles/embed.sh $(srcdir) $(PROFILES) >$@.new && \
		mv $@.new $@
