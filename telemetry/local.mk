# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	telemetry/cgroup.c telemetry/cgroup.h \
	telemetry/cpu.c telemetry/cpu.h \
	telemetry/devices.c telemetry/devices.h \
	telemetry/disk.c telemetry/disk.h \
	telemetry/gpu.c \
	telemetry/guard.c telemetry/guard.h \
	telemetry/infiniband.c telemetry/infiniband.h \
	telemetry/lustre.c telemetry/lustre.h \
	telemetry/meminfo.c telemetry/meminfo.h \
	telemetry/monitor.c telemetry/monitor.h \
	telemetry/mount.c telemetry/mount.h \
	telemetry/net.c telemetry/net.h \
	telemetry/nfs.c telemetry/nfs.h \
	telemetry/provenance.c telemetry/provenance.h \
	telemetry/plugins.h telemetry/registry.c \
	telemetry/pressure.c telemetry/pressure.h \
	telemetry/probe.c telemetry/probe.h \
	telemetry/process.c telemetry/process.h \
	telemetry/procfile.c telemetry/procfile.h \
	telemetry/sampler.c telemetry/sampler.h \
	telemetry/series.c telemetry/series.h \
	telemetry/storage.c telemetry/storage.h \
	telemetry/text.c telemetry/text.h
