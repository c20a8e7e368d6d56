# SPDX-License-Identifier: Apache-2.0
# Each target is tests/fuzz/fuzz_NAME.c, with its corpus in tests/fuzz/corpus/NAME. `make check`
# runs the corpus (replay_NAME); fuzzing needs clang: tests/fuzz/run.sh NAME.
FUZZ_REPLAY = tests/fuzz/replay.c tests/fuzz/fuzz.h

FUZZ_REPLAYS = \
	tests/fuzz/replay_recordio \
	tests/fuzz/replay_tfrecord \
	tests/fuzz/replay_protobuf \
	tests/fuzz/replay_sidecar \
	tests/fuzz/replay_jpeg \
	tests/fuzz/replay_baseline \
	tests/fuzz/replay_lmdb \
	tests/fuzz/replay_tar \
	tests/fuzz/replay_mds \
	tests/fuzz/replay_telemetry \
	tests/fuzz/replay_image_check \
	tests/fuzz/replay_jobfile \
	tests/fuzz/replay_profile \
	tests/fuzz/replay_result \
	tests/fuzz/replay_series \
	tests/fuzz/replay_options \
	tests/fuzz/replay_checkpoint \
	tests/fuzz/replay_hints \
	tests/fuzz/replay_safetensors \
	tests/fuzz/replay_mnist \
	tests/fuzz/replay_devices \
	tests/fuzz/replay_ranks \
	tests/fuzz/replay_nvml \
	tests/fuzz/replay_manifest \
	tests/fuzz/replay_lock \
	tests/fuzz/replay_escape \
	tests/fuzz/replay_headroom \
	tests/fuzz/replay_plans \
	tests/fuzz/replay_server
if HAVE_NFS
FUZZ_REPLAYS += tests/fuzz/replay_nfs
endif
if HAVE_ARCHIVE
FUZZ_REPLAYS += tests/fuzz/replay_archive
endif
check_PROGRAMS += $(FUZZ_REPLAYS)
TESTS += $(FUZZ_REPLAYS)

tests_fuzz_replay_recordio_SOURCES = tests/fuzz/fuzz_recordio.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_format.h
tests_fuzz_replay_recordio_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_tfrecord_SOURCES = tests/fuzz/fuzz_tfrecord.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_format.h
tests_fuzz_replay_tfrecord_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_protobuf_SOURCES = tests/fuzz/fuzz_protobuf.c $(FUZZ_REPLAY)
tests_fuzz_replay_protobuf_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_sidecar_SOURCES = tests/fuzz/fuzz_sidecar.c $(FUZZ_REPLAY)
tests_fuzz_replay_sidecar_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_jpeg_SOURCES = tests/fuzz/fuzz_jpeg.c $(FUZZ_REPLAY)
tests_fuzz_replay_jpeg_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_baseline_SOURCES = tests/fuzz/fuzz_baseline.c $(FUZZ_REPLAY)
tests_fuzz_replay_baseline_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_lmdb_SOURCES = tests/fuzz/fuzz_lmdb.c $(FUZZ_REPLAY) tests/fuzz/fuzz_format.h
tests_fuzz_replay_lmdb_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_tar_SOURCES = tests/fuzz/fuzz_tar.c $(FUZZ_REPLAY) tests/fuzz/fuzz_format.h
tests_fuzz_replay_tar_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_mds_SOURCES = tests/fuzz/fuzz_mds.c $(FUZZ_REPLAY) tests/fuzz/fuzz_format.h
tests_fuzz_replay_mds_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_telemetry_SOURCES = tests/fuzz/fuzz_telemetry.c $(FUZZ_REPLAY)
tests_fuzz_replay_telemetry_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_image_check_SOURCES = tests/fuzz/fuzz_image_check.c $(FUZZ_REPLAY)
tests_fuzz_replay_image_check_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_jobfile_SOURCES = tests/fuzz/fuzz_jobfile.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_jobfile_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_profile_SOURCES = tests/fuzz/fuzz_profile.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_profile_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_result_SOURCES = tests/fuzz/fuzz_result.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_result_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_series_SOURCES = tests/fuzz/fuzz_series.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_series_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_options_SOURCES = tests/fuzz/fuzz_options.c $(FUZZ_REPLAY)
tests_fuzz_replay_options_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_safetensors_SOURCES = tests/fuzz/fuzz_safetensors.c $(FUZZ_REPLAY)
tests_fuzz_replay_safetensors_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_hints_SOURCES = tests/fuzz/fuzz_hints.c $(FUZZ_REPLAY)
tests_fuzz_replay_hints_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_checkpoint_SOURCES = tests/fuzz/fuzz_checkpoint.c $(FUZZ_REPLAY)
tests_fuzz_replay_checkpoint_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_mnist_SOURCES = tests/fuzz/fuzz_mnist.c $(FUZZ_REPLAY)
tests_fuzz_replay_mnist_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_devices_SOURCES = tests/fuzz/fuzz_devices.c $(FUZZ_REPLAY)
tests_fuzz_replay_devices_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_ranks_SOURCES = tests/fuzz/fuzz_ranks.c $(FUZZ_REPLAY)
tests_fuzz_replay_ranks_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_nvml_SOURCES = tests/fuzz/fuzz_nvml.c $(FUZZ_REPLAY)
tests_fuzz_replay_nvml_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_nvml_LDFLAGS = $(AM_LDFLAGS) -rdynamic
tests_fuzz_replay_manifest_SOURCES = tests/fuzz/fuzz_manifest.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_manifest_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_lock_SOURCES = tests/fuzz/fuzz_lock.c $(FUZZ_REPLAY)
tests_fuzz_replay_lock_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_escape_SOURCES = tests/fuzz/fuzz_escape.c $(FUZZ_REPLAY)
tests_fuzz_replay_escape_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_headroom_SOURCES = tests/fuzz/fuzz_headroom.c $(FUZZ_REPLAY)
tests_fuzz_replay_headroom_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_plans_SOURCES = tests/fuzz/fuzz_plans.c $(FUZZ_REPLAY) \
	trainer/cuda/dnn_choices.c trainer/cuda/dnn.h
tests_fuzz_replay_plans_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_nfs_SOURCES = tests/fuzz/fuzz_nfs.c $(FUZZ_REPLAY)
tests_fuzz_replay_nfs_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_server_SOURCES = tests/fuzz/fuzz_server.c $(FUZZ_REPLAY) \
	tests/fuzz/fuzz_text.h
tests_fuzz_replay_server_LDADD = $(LIBIOBENCH_LIBS)
tests_fuzz_replay_archive_SOURCES = tests/fuzz/fuzz_archive.c $(FUZZ_REPLAY)
tests_fuzz_replay_archive_LDADD = $(SOURCE_ARCHIVE_LIBS) $(LIBIOBENCH_LIBS)

# The same objects with libFuzzer's main(). -rdynamic: dlsym() must find fuzz_nvml.
tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.$(OBJEXT) libiobench.a
	$(AM_V_CCLD)$(LINK) -rdynamic -fsanitize=fuzzer $(filter %.$(OBJEXT),$^) $(LIBIOBENCH_LIBS)
if HAVE_ARCHIVE
tests/fuzz/fuzz_archive: cmd/pack/libarchive-source.a
tests/fuzz/fuzz_archive: LIBIOBENCH_LIBS := $(SOURCE_ARCHIVE_LIBS) $(LIBIOBENCH_LIBS)
endif
tests/fuzz/fuzz_plans: trainer/cuda/dnn_choices.$(OBJEXT) # does not need CUDA

EXTRA_DIST += tests/fuzz/campaign.sh tests/fuzz/run.sh tests/fuzz/corpus
