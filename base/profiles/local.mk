# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += base/profiles/profiles.c base/profiles/profiles.h
nodist_libiobench_a_SOURCES += base/profiles/built-in.c

# In the order of `iobench list profiles`.
PROFILES = \
	base/profiles/gpu/v100.ini base/profiles/gpu/a100.ini base/profiles/gpu/h100.ini base/profiles/gpu/h200.ini \
	base/profiles/gpu/b200.ini base/profiles/gpu/gb200.ini base/profiles/gpu/gb300.ini \
	base/profiles/gpu/mi355x.ini \
	base/profiles/network/resnet50.ini base/profiles/network/unet3d.ini base/profiles/network/retinanet.ini \
	base/profiles/network/dlrm.ini base/profiles/network/flux.ini base/profiles/network/llama3.1-8b.ini \
	base/profiles/network/llama3.1-70b.ini base/profiles/network/llama3.1-405b.ini \
	base/profiles/network/llama-1t.ini \
	base/profiles/node/dgx1-v100.ini base/profiles/node/dgx2h-v100.ini base/profiles/node/dgx-a100.ini \
	base/profiles/node/dgx-h100.ini base/profiles/node/dgx-h200.ini base/profiles/node/xe9680l-b200.ini \
	base/profiles/node/gb200-tray.ini base/profiles/node/gb300-tray.ini \
	base/profiles/storage/nvme-9550.ini base/profiles/storage/nvme-pm1743.ini base/profiles/storage/nfs-100g.ini \
	base/profiles/storage/parallel-k3000.ini base/profiles/storage/3fs-180.ini base/profiles/storage/object-100g.ini \
	base/profiles/fabric/edr.ini base/profiles/fabric/hdr.ini base/profiles/fabric/ndr.ini base/profiles/fabric/xdr.ini \
	base/profiles/fabric/ethernet-25g.ini base/profiles/fabric/ethernet-100g.ini \
	base/profiles/workload/unet3d-a100.ini base/profiles/workload/unet3d-h100.ini base/profiles/workload/unet3d-b200.ini \
	base/profiles/workload/resnet50-a100.ini base/profiles/workload/resnet50-h100.ini base/profiles/workload/cosmoflow-a100.ini \
	base/profiles/workload/cosmoflow-h100.ini base/profiles/workload/retinanet-b200.ini base/profiles/workload/retinanet-mi355.ini \
	base/profiles/workload/flux-b200.ini base/profiles/workload/dlrm-b200.ini

EXTRA_DIST += base/profiles/embed.sh $(PROFILES)
CLEANFILES += base/profiles/built-in.c

base/profiles/built-in.c: $(PROFILES) base/profiles/embed.sh
	$(AM_V_GEN)$(MKDIR_P) base/profiles && $(SHELL) $(srcdir)/base/profiles/embed.sh $(srcdir) $(PROFILES) >$@.new && \
		mv $@.new $@
