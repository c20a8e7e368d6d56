# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	dataset/catalog.c dataset/catalog.h \
	dataset/image_header.c dataset/image_header.h \
	dataset/sample.h \
	dataset/synthesis.c dataset/synthesis.h \
	dataset/synthesis_picture.c dataset/synthesis_picture.h \
	dataset/sidecar.c dataset/sidecar.h
