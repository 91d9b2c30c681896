#!/usr/bin/env python3
"""Trains a tiny language model whose vocabulary is spread over the ranks: each has the weights of some of the letters that may come next, and no
rank ever has a whole row of logits. The losses are the same, digit for digit, on any number of ranks.

    mpirun -n 2 python3 -m mpi4py 08_train.py

The model gives, for each letter, the logits of the one that follows it. Needs mpi4py and NumPy. allfold takes tensors of PyTorch, also on GPUs, in
place of NumPy's arrays; 06_cross_entropy.py has the same loss in torch.autograd."""
import numpy
from mpi4py import MPI

import allfold

TEXT = "the cat sat on the mat and the dog sat on the log but the frog sat in the bog and that was that "
STEPS, RATE = 30, 20.0
WORDS = {"axis": 1, "cut": 1}  # rows of logits run along the vocabulary, which the ranks share out


def main():
    rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    letters = sorted(set(TEXT))
    tokens = numpy.array([letters.index(letter) for letter in TEXT])
    inputs, targets = tokens[:-1], tokens[1:]
    first, last = (len(letters) * at // ranks for at in (rank, rank + 1))
    weights = numpy.random.default_rng(1).standard_normal((len(letters), len(letters)), numpy.float32)[:, first:last].copy()
    scale = numpy.full(len(targets), 1 / len(targets))  # of the mean over tokens

    for step in range(STEPS + 1):
        logits = weights[inputs]  # tokens x this rank's letters
        found = allfold.log_probs(logits, targets, **WORDS, outputs=("log_prob", "logsumexp", "entropy"))
        loss, entropy = (allfold.mean(x, comm=MPI.COMM_SELF) for x in (-found.log_prob, found.entropy))  # every rank has all tokens'
        if rank == 0 and step % 5 == 0:
            print(f"{step:3} loss {loss!r} ({loss.hex()}), entropy {entropy!r}")
        slopes = allfold.log_probs_gradient(logits, targets, found.logsumexp, scale, **WORDS, out=logits)
        numpy.subtract.at(weights, inputs, numpy.float32(RATE) * slopes)  # rows of one letter one by one: in one order on any rank


if __name__ == "__main__":
    main()
