# SPDX-License-Identifier: Apache-2.0
libiobench_a_SOURCES += \
	sizing/answer.c sizing/answer.h \
	sizing/curve.c sizing/curve.h \
	sizing/inputs.c sizing/inputs.h \
	sizing/rates.c sizing/rates.h \
	sizing/simulation.c sizing/simulation.h
