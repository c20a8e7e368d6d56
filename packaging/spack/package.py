# SPDX-License-Identifier: Apache-2.0
# A recipe for Spack: copy to REPO/packages/iobench/, then
#     spack dev-build -d /path/to/iobench iobench@0.3.0
from spack.package import *


class Iobench(AutotoolsPackage, CudaPackage):
    """Storage and data-pipeline benchmark for training clusters: reads data sets as training does,
    from verified cold caches, and reports samples/s, the GPUs that would feed, and the bottleneck."""

    homepage = "https://iobench.example/"
    license("Apache-2.0")
    version("0.3.0")

    variant("mpi", default=True, description="One job on many ranks")
    variant("nfs", default=True, description="Data sets on nfs:// servers")
    variant("lmdb", default=True, description="Write LMDB, and read it as Caffe does")
    variant("archive", default=True, description="Pack from any tar file")
    variant("dnnl", default=True, description="Train networks on CPUs")
    variant("verbs", default=False, description="Measure a fabric by RDMA")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("libwebp")
    depends_on("jansson")
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("isa-l")
    depends_on("liburing")
    depends_on("mpi", when="+mpi")
    depends_on("libnfs", when="+nfs")
    depends_on("lmdb", when="+lmdb")
    depends_on("libarchive", when="+archive")
    depends_on("onednn cpu_runtime=omp", when="+dnnl")
    depends_on("rdma-core", when="+verbs")
    depends_on("cudnn@9:", when="+cuda")

    def configure_args(self):
        args = ["--without-cmocka"]
        for name in ("mpi", "nfs", "lmdb", "archive", "dnnl", "verbs"):
            args += self.with_or_without(name)
        if self.spec.satisfies("+cuda"):
            args.append(f"--with-cuda={self.spec['cuda'].prefix}")
            args.append("--with-cuda-archs=" + " ".join(self.spec.variants["cuda_arch"].value))
        else:
            args.append("--without-cuda")
        return args
