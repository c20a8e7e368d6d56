# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	decode/decoder.c decode/decoder.h \
	decode/plugins.h decode/registry.c \
	decode/view.c decode/view.h \
	decode/none.c decode/checksum.c \
	decode/image.c decode/image.h decode/jpeg.c decode/png.c decode/raw.c
