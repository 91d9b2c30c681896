"""A recipe for Spack 1.0 or newer, without its version: `make spack-recipe` adds that, with address and checksum (packaging/README.md)."""
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Allfold(AutotoolsPackage, CudaPackage):
    """Folds (reductions) and softmax of arrays that are spread over MPI ranks, on GPUs and CPUs."""

    license("BSD-3-Clause")

    variant("openmp", default=True, description="Threads in the CPU backend")
    variant("hdf5", default=True, description="Read HDF5 and NetCDF-4 files")
    variant("fortran", default=True, description="The Fortran module")
    variant("python", default=False, description="The Python package")
    variant("report", default=False, description="What allfold-scaling-report needs: Python, NumPy, matplotlib")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("json-c@0.14:")
    depends_on("libdeflate")
    depends_on("hdf5@1.10.3: ~mpi", when="+hdf5")
    depends_on("zstd", when="+hdf5")
    depends_on("cuda@11.8:", when="+cuda")
    extends("python@3.9:", when="+python")
    depends_on("py-numpy", type=("build", "run"), when="+python")
    depends_on("py-mpi4py", type="run", when="+python")
    depends_on("python@3.9:", type="run", when="+report")
    depends_on("py-matplotlib", type="run", when="+report")
    depends_on("py-numpy", type="run", when="+report")
    depends_on("python@3.9:", type="test")
    depends_on("py-numpy", type="test")

    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    def configure_args(self):
        spec = self.spec
        args = ["MPICC={0}".format(spec["mpi"].mpicc), "--with-libdeflate"]
        args += self.enable_or_disable("openmp")
        args += self.with_or_without("hdf5")
        args += self.with_or_without("zstd", variant="hdf5")
        args += self.with_or_without("fortran")
        if spec.satisfies("+fortran"):
            args.append("FC={0}".format(spec["mpi"].mpifc))
        if spec.satisfies("+python"):
            args += ["PYTHON={0}".format(spec["python"].command.path), "--with-python-dir={0}".format(python_purelib)]
        else:
            args.append("--without-python-dir")
        if spec.satisfies("+cuda"):
            args.append("--with-cuda={0}".format(spec["cuda"].prefix))
            args.append("--with-cuda-arch={0}".format(" ".join(spec.variants["cuda_arch"].value)))
        else:
            args.append("--without-cuda")
        return args
