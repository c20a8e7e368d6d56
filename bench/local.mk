# SPDX-License-Identifier: Apache-2.0

noinst_PROGRAMS += bench/harness
bench_harness_SOURCES = bench/harness.c bench/job.c bench/job.h
bench_harness_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/shuffle
bench_shuffle_SOURCES = bench/shuffle.c
bench_shuffle_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/shuffle-quality
bench_shuffle_quality_SOURCES = bench/shuffle-quality.c
bench_shuffle_quality_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/decode
bench_decode_SOURCES = bench/decode.c
bench_decode_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/catalog
bench_catalog_SOURCES = bench/catalog.c
bench_catalog_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/parse
bench_parse_SOURCES = bench/parse.c
bench_parse_LDADD = $(LIBIOBENCH_LIBS)

noinst_PROGRAMS += bench/io
bench_io_SOURCES = bench/io.c
bench_io_LDADD = $(LIBIOBENCH_LIBS)

if HAVE_URING
noinst_PROGRAMS += bench/iops
bench_iops_SOURCES = bench/iops.c bench/job.c bench/job.h
bench_iops_LDADD = $(LIBIOBENCH_LIBS)
endif

noinst_PROGRAMS += bench/lanes
bench_lanes_SOURCES = bench/lanes.c bench/job.c bench/job.h tests/unit/fault_fs.c tests/unit/fault_fs.h
bench_lanes_LDADD = $(LIBIOBENCH_LIBS)

if HAVE_NFS
noinst_PROGRAMS += bench/nfs
bench_nfs_SOURCES = bench/nfs.c tests/unit/nfs_stand_in.c tests/unit/nfs_stand_in.h
bench_nfs_LDADD = $(LIBIOBENCH_LIBS)
endif

noinst_PROGRAMS += bench/synthesis
bench_synthesis_SOURCES = bench/synthesis.c
bench_synthesis_LDADD = $(LIBIOBENCH_LIBS)

EXTRA_DIST += bench/all.py bench/against.py bench/buffer.py bench/files.py bench/decode_peers.py bench/photographs.py bench/decode_pixels.py bench/knee.py bench/lmdb-map.py bench/loaders.py bench/pack_quality.py bench/ramp.py
EXTRA_DIST += bench/checkpoint.py

noinst_PROGRAMS += bench/telemetry
bench_telemetry_SOURCES = bench/telemetry.c
bench_telemetry_LDADD = $(LIBIOBENCH_LIBS)
EXTRA_DIST += bench/telemetry_rates.py

if HAVE_MPI
noinst_PROGRAMS += bench/net_mpi
bench_net_mpi_SOURCES = bench/net_mpi.c
bench_net_mpi_LDADD = $(MPI_RANKS_LIBS) $(LIBIOBENCH_LIBS)
endif
EXTRA_DIST += bench/net.py

noinst_PROGRAMS += bench/forward
bench_forward_SOURCES = bench/forward.c
bench_forward_LDADD = $(CPU_LIBS) $(LIBIOBENCH_LIBS)
EXTRA_DIST += bench/parity.py bench/zoo.py

if HAVE_DNNL
noinst_PROGRAMS += bench/trainer
bench_trainer_SOURCES = bench/trainer.c bench/convolutions.c bench/convolutions.h
bench_trainer_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_SOURCE='"$(abs_top_srcdir)"'
bench_trainer_LDADD = $(MPI_RANKS_LIBS) $(CPU_LIBS) $(LIBIOBENCH_LIBS)
endif
EXTRA_DIST += bench/trainer_peer.py
EXTRA_DIST += bench/curve.py bench/nodes.py bench/predict.py bench/shuffle-learning.py bench/slow-disk.py

# Needs a GPU. bench/device.sh runs it all, from here or from the folder of `make portable`.
noinst_PROGRAMS += bench/device_steps
bench_device_steps_SOURCES = bench/device_steps.c
bench_device_steps_LDADD = $(MPI_RANKS_LIBS) $(CPU_LIBS) $(MODULE_HOST_LIBS)
noinst_PROGRAMS += bench/device_decode
bench_device_decode_SOURCES = bench/device_decode.c
bench_device_decode_LDADD = $(MODULE_HOST_LIBS)
EXTRA_DIST += bench/device.sh bench/device_torch.py
if HAVE_CUDA
noinst_PROGRAMS += bench/device_kernels
bench_device_kernels_SOURCES = bench/device_kernels.c kernels/runtime.c
bench_device_kernels_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
# Does not need cuDNN.
bench_device_kernels_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
bench_device_kernels_LDADD = $(CUDA_OBJECTS) $(LIBIOBENCH_LIBS) $(CUDA_LIBS)
bench_device_kernels_DEPENDENCIES = $(CUDA_OBJECTS) libiobench.a
PORTABLE_ALSO += bench/device_decode bench/device_kernels bench/device_steps $(srcdir)/bench/device.sh \
	$(srcdir)/bench/device_torch.py
if HAVE_CMOCKA
PORTABLE_ALSO += tests/cuda/test_device_kernels tests/cuda/test_device_magnitudes tests/cuda/test_device_optimise \
	tests/cuda/test_device_resize tests/cuda/test_device_fused tests/cuda/test_device_trial tests/cuda/test_cuda \
	tests/unit/test_backend tests/unit/test_quantise tests/unit/test_trainer_golden tests/unit/test_overfit $(srcdir)/tests/golden
endif
endif
