# SPDX-License-Identifier: Apache-2.0
# A target is tests/fuzz/fuzz_NAME.c. Its corpus is run by `make check` (replay_NAME); fuzzing it
# needs clang: tests/fuzz/run.sh NAME.
FUZZ_LIBFUZZER = -fsanitize=fuzzer

check_PROGRAMS += tests/fuzz/replay_recordio
TESTS += tests/fuzz/replay_recordio
tests_fuzz_replay_recordio_SOURCES = tests/fuzz/fuzz_recordio.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h tests/fuzz/fuzz_format.h
tests_fuzz_replay_recordio_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/recordio"'
tests_fuzz_replay_recordio_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_recordio
tests_fuzz_fuzz_recordio_SOURCES = tests/fuzz/fuzz_recordio.c
tests_fuzz_fuzz_recordio_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_recordio_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_tfrecord
TESTS += tests/fuzz/replay_tfrecord
tests_fuzz_replay_tfrecord_SOURCES = tests/fuzz/fuzz_tfrecord.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h tests/fuzz/fuzz_format.h
tests_fuzz_replay_tfrecord_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/tfrecord"'
tests_fuzz_replay_tfrecord_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_tfrecord
tests_fuzz_fuzz_tfrecord_SOURCES = tests/fuzz/fuzz_tfrecord.c
tests_fuzz_fuzz_tfrecord_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_tfrecord_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_protobuf
TESTS += tests/fuzz/replay_protobuf
tests_fuzz_replay_protobuf_SOURCES = tests/fuzz/fuzz_protobuf.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h
tests_fuzz_replay_protobuf_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/protobuf"'
tests_fuzz_replay_protobuf_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_protobuf
tests_fuzz_fuzz_protobuf_SOURCES = tests/fuzz/fuzz_protobuf.c
tests_fuzz_fuzz_protobuf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_protobuf_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_sidecar
TESTS += tests/fuzz/replay_sidecar
tests_fuzz_replay_sidecar_SOURCES = tests/fuzz/fuzz_sidecar.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h
tests_fuzz_replay_sidecar_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/sidecar"'
tests_fuzz_replay_sidecar_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_sidecar
tests_fuzz_fuzz_sidecar_SOURCES = tests/fuzz/fuzz_sidecar.c
tests_fuzz_fuzz_sidecar_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_sidecar_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_jpeg
TESTS += tests/fuzz/replay_jpeg
tests_fuzz_replay_jpeg_SOURCES = tests/fuzz/fuzz_jpeg.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_jpeg_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/jpeg"'
tests_fuzz_replay_jpeg_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_jpeg
tests_fuzz_fuzz_jpeg_SOURCES = tests/fuzz/fuzz_jpeg.c
tests_fuzz_fuzz_jpeg_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_jpeg_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_lmdb
TESTS += tests/fuzz/replay_lmdb
tests_fuzz_replay_lmdb_SOURCES = tests/fuzz/fuzz_lmdb.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h tests/fuzz/fuzz_format.h
tests_fuzz_replay_lmdb_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/lmdb"'
tests_fuzz_replay_lmdb_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_lmdb
tests_fuzz_fuzz_lmdb_SOURCES = tests/fuzz/fuzz_lmdb.c
tests_fuzz_fuzz_lmdb_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_lmdb_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_tar
TESTS += tests/fuzz/replay_tar
tests_fuzz_replay_tar_SOURCES = tests/fuzz/fuzz_tar.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h tests/fuzz/fuzz_format.h
tests_fuzz_replay_tar_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/tar"'
tests_fuzz_replay_tar_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_tar
tests_fuzz_fuzz_tar_SOURCES = tests/fuzz/fuzz_tar.c
tests_fuzz_fuzz_tar_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_tar_LDADD = $(LIBIOBENCH_LIBS)
check_PROGRAMS += tests/fuzz/replay_texts
TESTS += tests/fuzz/replay_texts
tests_fuzz_replay_texts_SOURCES = tests/fuzz/fuzz_texts.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_texts_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/texts"'
tests_fuzz_replay_texts_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_texts
tests_fuzz_fuzz_texts_SOURCES = tests/fuzz/fuzz_texts.c
tests_fuzz_fuzz_texts_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_texts_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_telemetry
TESTS += tests/fuzz/replay_telemetry
tests_fuzz_replay_telemetry_SOURCES = tests/fuzz/fuzz_telemetry.c tests/fuzz/replay.c \
	tests/fuzz/fuzz.h
tests_fuzz_replay_telemetry_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/telemetry"'
tests_fuzz_replay_telemetry_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_telemetry
tests_fuzz_fuzz_telemetry_SOURCES = tests/fuzz/fuzz_telemetry.c
tests_fuzz_fuzz_telemetry_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_telemetry_LDADD = $(LIBIOBENCH_LIBS)

EXTRA_DIST += tests/fuzz/campaign.sh tests/fuzz/run.sh tests/fuzz/corpus

# The pictures of the decoder's corpus.
check_PROGRAMS += tests/fuzz/replay_picture
TESTS += tests/fuzz/replay_picture
tests_fuzz_replay_picture_SOURCES = tests/fuzz/fuzz_picture.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_picture_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/jpeg"'
tests_fuzz_replay_picture_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_picture
tests_fuzz_fuzz_picture_SOURCES = tests/fuzz/fuzz_picture.c
tests_fuzz_fuzz_picture_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_picture_LDADD = $(LIBIOBENCH_LIBS)
