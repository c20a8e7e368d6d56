# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	telemetry/counters.h \
	telemetry/cgroup.c \
	telemetry/proc.c \
	telemetry/devices.c telemetry/devices.h \
	telemetry/disk.c \
	telemetry/gpu.c \
	telemetry/guard.c telemetry/guard.h \
	telemetry/infiniband.c \
	telemetry/lustre.c \
	telemetry/monitor.c telemetry/monitor.h \
	telemetry/mount.c telemetry/mount.h \
	telemetry/nfs.c \
	telemetry/provenance.c telemetry/provenance.h \
	telemetry/plugins.h telemetry/registry.c \
	telemetry/probe.c telemetry/probe.h \
	telemetry/procfile.c telemetry/procfile.h \
	telemetry/sampler.c telemetry/sampler.h \
	telemetry/series.c telemetry/series.h \
	telemetry/storage.c telemetry/storage.h
