# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	telemetry/devices.c telemetry/devices.h \
	telemetry/gpu.c \
	telemetry/guard.c telemetry/guard.h \
	telemetry/plugins.h telemetry/registry.c \
	telemetry/probe.c telemetry/probe.h \
	telemetry/probes_machine.c telemetry/probes_storage.c \
	telemetry/series.c telemetry/series.h \
	telemetry/storage.c telemetry/storage.h
