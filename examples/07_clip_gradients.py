#!/usr/bin/env python3
"""Clips the gradients of a model by their global norm, where each rank has a part of them, as ZeRO and FSDP cut a model: all gradients laid end
to end are shared out evenly, so a rank has some of the tensors, and the end of one and the beginning of another. One call takes the norm of
all, which has the same bits on any number of ranks. So do the clipped gradients.

    mpirun -n 4 python3 -m mpi4py 07_clip_gradients.py

Needs mpi4py and NumPy. allfold takes tensors of PyTorch in place of NumPy's arrays."""
import sys

import numpy
from mpi4py import MPI

import allfold

MAX_NORM = 1.0
LAYERS = [(512, 64), (64,), (64, 3, 3, 8), (8,), (1,), (4096, 16), (16,), (1000, 33)]  # shapes of the model's parameters


def own_parts(gradients, rank, ranks):
    """This rank's part of each gradient, in one dimension: many are empty."""
    total = sum(gradient.size for gradient in gradients)
    begin, end = total * rank // ranks, total * (rank + 1) // ranks
    parts, first = [], 0
    for gradient in gradients:
        parts.append(gradient.reshape(-1)[max(begin - first, 0):max(end - first, 0)])
        first += gradient.size
    return parts


def clip(parts, comm):
    """Scales the gradients in place, so that the norm of all is at most MAX_NORM. Returns what it was."""
    norm = allfold.foreach.norm(parts, comm=comm, total=True)
    if norm > MAX_NORM:
        for part in parts:
            part *= part.dtype.type(MAX_NORM / norm)
    return norm


def main():
    rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    generator = numpy.random.default_rng(1)
    whole = [(generator.standard_normal(shape) * 10.0 ** generator.integers(-4, 2)).astype(numpy.float32) for shape in LAYERS]
    parts = own_parts(whole, rank, ranks)  # views: the gradients of this rank alone are changed
    norm = clip(parts, MPI.COMM_WORLD)
    norms = allfold.foreach.norm(parts)  # of each tensor, over all ranks
    clipped = allfold.foreach.norm(parts, total=True)
    if rank == 0:
        print(f"{len(parts)} gradients on {ranks} rank{'s' if ranks > 1 else ''}: norm {norm.hex()}, clipped {clipped.hex()}, "
              f"largest of one {max(norms).hex()}")
    if not abs(clipped - MAX_NORM) < 1e-6:
        sys.exit("the norm of the clipped gradients is not the largest allowed")


if __name__ == "__main__":
    main()
