"""A recipe for Spack: in a repository of your own as packages/allfold/package.py (docs/cluster.md)."""
from spack.package import *


class Allfold(AutotoolsPackage, CudaPackage):
    """Folds (reductions) and softmax of arrays that are spread over MPI ranks, on GPUs and CPUs."""

    # Where the source is: an address, or the path of a checkout.
    homepage = "https://example.org/allfold"
    git = "https://example.org/allfold.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("openmp", default=True, description="Threads in the CPU backend")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("json-c@0.14:")
    depends_on("hdf5@1.10.3: ~mpi")
    depends_on("libdeflate")
    depends_on("zstd")
    depends_on("cuda@11.8:", when="+cuda")
    depends_on("python@3.9:", type="run")
    depends_on("py-matplotlib", type="run")
    depends_on("py-numpy", type=("test", "run"))

    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    def autoreconf(self, spec, prefix):
        Executable("./bootstrap")()

    def configure_args(self):
        args = ["CC={0}".format(self.spec["mpi"].mpicc)]
        args += ["--with-hdf5", "--with-libdeflate", "--with-zstd"]
        args += self.enable_or_disable("openmp")
        if self.spec.satisfies("+cuda"):
            args.append("--with-cuda={0}".format(self.spec["cuda"].prefix))
            args.append("--with-cuda-arch={0}".format(" ".join(self.spec.variants["cuda_arch"].value)))
        else:
            args.append("--without-cuda")
        return args
