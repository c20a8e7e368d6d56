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
check_PROGRAMS += tests/fuzz/replay_image_check
TESTS += tests/fuzz/replay_image_check
tests_fuzz_replay_image_check_SOURCES = tests/fuzz/fuzz_image_check.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_image_check_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/jpeg"'
tests_fuzz_replay_image_check_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_image_check
tests_fuzz_fuzz_image_check_SOURCES = tests/fuzz/fuzz_image_check.c
tests_fuzz_fuzz_image_check_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_image_check_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_jobfile
TESTS += tests/fuzz/replay_jobfile
tests_fuzz_replay_jobfile_SOURCES = tests/fuzz/fuzz_jobfile.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_jobfile_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/jobfile"'
tests_fuzz_replay_jobfile_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_jobfile
tests_fuzz_fuzz_jobfile_SOURCES = tests/fuzz/fuzz_jobfile.c
tests_fuzz_fuzz_jobfile_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_jobfile_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_profile
TESTS += tests/fuzz/replay_profile
tests_fuzz_replay_profile_SOURCES = tests/fuzz/fuzz_profile.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_profile_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/profile"'
tests_fuzz_replay_profile_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_profile
tests_fuzz_fuzz_profile_SOURCES = tests/fuzz/fuzz_profile.c
tests_fuzz_fuzz_profile_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_profile_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_result
TESTS += tests/fuzz/replay_result
tests_fuzz_replay_result_SOURCES = tests/fuzz/fuzz_result.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_result_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/result"'
tests_fuzz_replay_result_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_result
tests_fuzz_fuzz_result_SOURCES = tests/fuzz/fuzz_result.c
tests_fuzz_fuzz_result_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_result_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_series
TESTS += tests/fuzz/replay_series
tests_fuzz_replay_series_SOURCES = tests/fuzz/fuzz_series.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_series_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/series"'
tests_fuzz_replay_series_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_series
tests_fuzz_fuzz_series_SOURCES = tests/fuzz/fuzz_series.c
tests_fuzz_fuzz_series_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_series_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_options
TESTS += tests/fuzz/replay_options
tests_fuzz_replay_options_SOURCES = tests/fuzz/fuzz_options.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_options_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/options"'
tests_fuzz_replay_options_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_options
tests_fuzz_fuzz_options_SOURCES = tests/fuzz/fuzz_options.c
tests_fuzz_fuzz_options_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_options_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_checkpoint
TESTS += tests/fuzz/replay_checkpoint
tests_fuzz_replay_checkpoint_SOURCES = tests/fuzz/fuzz_checkpoint.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_checkpoint_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/checkpoint"'
tests_fuzz_replay_checkpoint_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_checkpoint
tests_fuzz_fuzz_checkpoint_SOURCES = tests/fuzz/fuzz_checkpoint.c
tests_fuzz_fuzz_checkpoint_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_checkpoint_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_mnist
TESTS += tests/fuzz/replay_mnist
tests_fuzz_replay_mnist_SOURCES = tests/fuzz/fuzz_mnist.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_mnist_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/mnist"'
tests_fuzz_replay_mnist_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_mnist
tests_fuzz_fuzz_mnist_SOURCES = tests/fuzz/fuzz_mnist.c
tests_fuzz_fuzz_mnist_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_mnist_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_devices
TESTS += tests/fuzz/replay_devices
tests_fuzz_replay_devices_SOURCES = tests/fuzz/fuzz_devices.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_devices_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/devices"'
tests_fuzz_replay_devices_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_devices
tests_fuzz_fuzz_devices_SOURCES = tests/fuzz/fuzz_devices.c
tests_fuzz_fuzz_devices_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_devices_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_ranks
TESTS += tests/fuzz/replay_ranks
tests_fuzz_replay_ranks_SOURCES = tests/fuzz/fuzz_ranks.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_ranks_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/ranks"'
tests_fuzz_replay_ranks_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_ranks
tests_fuzz_fuzz_ranks_SOURCES = tests/fuzz/fuzz_ranks.c
tests_fuzz_fuzz_ranks_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_ranks_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_nvml
TESTS += tests/fuzz/replay_nvml
tests_fuzz_replay_nvml_SOURCES = tests/fuzz/fuzz_nvml.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_nvml_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/nvml"'
tests_fuzz_replay_nvml_LDFLAGS = $(AM_LDFLAGS) -rdynamic
tests_fuzz_replay_nvml_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_nvml
tests_fuzz_fuzz_nvml_SOURCES = tests/fuzz/fuzz_nvml.c
tests_fuzz_fuzz_nvml_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER) -rdynamic
tests_fuzz_fuzz_nvml_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_manifest
TESTS += tests/fuzz/replay_manifest
tests_fuzz_replay_manifest_SOURCES = tests/fuzz/fuzz_manifest.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_manifest_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/manifest"'
tests_fuzz_replay_manifest_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_manifest
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/fuzz_manifest.c
tests_fuzz_fuzz_manifest_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_manifest_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_lock
TESTS += tests/fuzz/replay_lock
tests_fuzz_replay_lock_SOURCES = tests/fuzz/fuzz_lock.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_lock_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/lock"'
tests_fuzz_replay_lock_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_lock
tests_fuzz_fuzz_lock_SOURCES = tests/fuzz/fuzz_lock.c
tests_fuzz_fuzz_lock_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_lock_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_escape
TESTS += tests/fuzz/replay_escape
tests_fuzz_replay_escape_SOURCES = tests/fuzz/fuzz_escape.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_escape_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/escape"'
tests_fuzz_replay_escape_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_escape
tests_fuzz_fuzz_escape_SOURCES = tests/fuzz/fuzz_escape.c
tests_fuzz_fuzz_escape_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_escape_LDADD = $(LIBIOBENCH_LIBS)

check_PROGRAMS += tests/fuzz/replay_headroom
TESTS += tests/fuzz/replay_headroom
tests_fuzz_replay_headroom_SOURCES = tests/fuzz/fuzz_headroom.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_headroom_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/headroom"'
tests_fuzz_replay_headroom_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_headroom
tests_fuzz_fuzz_headroom_SOURCES = tests/fuzz/fuzz_headroom.c
tests_fuzz_fuzz_headroom_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_headroom_LDADD = $(LIBIOBENCH_LIBS)

# It needs nothing of CUDA, and so is built where there is none.
check_PROGRAMS += tests/fuzz/replay_plans
TESTS += tests/fuzz/replay_plans
tests_fuzz_replay_plans_SOURCES = tests/fuzz/fuzz_plans.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	trainer/cuda/dnn_choices.c trainer/cuda/dnn_choices.h
tests_fuzz_replay_plans_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/plans"'
tests_fuzz_replay_plans_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_plans
tests_fuzz_fuzz_plans_SOURCES = tests/fuzz/fuzz_plans.c \
	trainer/cuda/dnn_choices.c trainer/cuda/dnn_choices.h
tests_fuzz_fuzz_plans_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_plans_LDADD = $(LIBIOBENCH_LIBS)

if HAVE_NFS
check_PROGRAMS += tests/fuzz/replay_nfs
TESTS += tests/fuzz/replay_nfs
tests_fuzz_replay_nfs_SOURCES = tests/fuzz/fuzz_nfs.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_nfs_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/nfs"'
tests_fuzz_replay_nfs_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_nfs
tests_fuzz_fuzz_nfs_SOURCES = tests/fuzz/fuzz_nfs.c
tests_fuzz_fuzz_nfs_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_nfs_LDADD = $(LIBIOBENCH_LIBS)
endif

check_PROGRAMS += tests/fuzz/replay_server
TESTS += tests/fuzz/replay_server
tests_fuzz_replay_server_SOURCES = tests/fuzz/fuzz_server.c tests/fuzz/replay.c tests/fuzz/fuzz.h \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_server_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/server"'
tests_fuzz_replay_server_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_server
tests_fuzz_fuzz_server_SOURCES = tests/fuzz/fuzz_server.c
tests_fuzz_fuzz_server_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_server_LDADD = $(LIBIOBENCH_LIBS)

if HAVE_ARCHIVE
check_PROGRAMS += tests/fuzz/replay_archive
TESTS += tests/fuzz/replay_archive
tests_fuzz_replay_archive_SOURCES = tests/fuzz/fuzz_archive.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_replay_archive_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"$(abs_srcdir)/tests/fuzz/corpus/archive"'
tests_fuzz_replay_archive_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_PROGRAMS += tests/fuzz/fuzz_archive
tests_fuzz_fuzz_archive_SOURCES = tests/fuzz/fuzz_archive.c
tests_fuzz_fuzz_archive_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LIBFUZZER)
tests_fuzz_fuzz_archive_LDADD = $(LIBIOBENCH_LIBS)
endif
