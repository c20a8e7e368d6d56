# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	telemetry/devices.c telemetry/devices.h \
	telemetry/disk.c telemetry/disk.h \
	telemetry/mount.c telemetry/mount.h \
	telemetry/nfs.c telemetry/nfs.h \
	telemetry/process.c telemetry/process.h \
	telemetry/procfile.c telemetry/procfile.h \
	telemetry/storage.c telemetry/storage.h \
	telemetry/text.c telemetry/text.h
