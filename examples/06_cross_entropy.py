#!/usr/bin/env python3
"""Vocabulary-parallel cross-entropy: each rank has the logits of some words of the vocabulary, for all tokens, and no rank ever has
a whole row. Loss and gradient have the same bits on any number of ranks; they are compared with PyTorch's on one.

    mpirun -n 4 python3 -m mpi4py 06_cross_entropy.py [TOKENS WORDS]

Needs PyTorch and mpi4py. On GPUs each rank uses the one of its number."""
import sys

import torch
from mpi4py import MPI

import allfold

COLUMNS = {"axis": 1, "cut": 1}  # rows are folded along the vocabulary, which is what the ranks share out


class CrossEntropy(torch.autograd.Function):
    """The mean over tokens of logsumexp(logits) - logits[target]. logits: tokens x this rank's words, of which the first is word
    `first` of the vocabulary; targets: the word of each token, on every rank."""

    @staticmethod
    def forward(context, logits, targets, first):
        logits = logits.detach()
        place = targets - first
        mine = (place >= 0) & (place < logits.shape[1])  # tokens whose target is one of this rank's words
        rows = torch.nonzero(mine).squeeze(1)
        context.save_for_backward(logits, rows, place[rows])
        context.tokens = len(targets)
        found = torch.zeros(1, len(targets), dtype=torch.float64, device=logits.device)
        found[0, rows] = logits[rows, place[rows]].double()
        of_target = allfold.sum(found, axis=0)  # one rank's value and the others' zeros
        terms = allfold.logsumexp(logits, **COLUMNS) - of_target  # float64, tokens
        rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        share = slice(len(terms) * rank // ranks, len(terms) * (rank + 1) // ranks)  # every rank has all terms
        return torch.tensor(allfold.mean(terms[share]), dtype=torch.float64)

    @staticmethod
    def backward(context, gradient):
        logits, rows, columns = context.saved_tensors
        slopes = allfold.softmax(logits, **COLUMNS)
        slopes[rows, columns] -= 1
        return slopes * (gradient.item() / context.tokens), None, None


def main():
    rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    tokens, words = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (64, 5000)
    device = f"cuda:{rank % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(1)
    whole = 4 * torch.randn(tokens, words, generator=generator)  # the same on every rank
    targets = torch.randint(words, (tokens,), generator=generator).to(device)

    first, last = words * rank // ranks, words * (rank + 1) // ranks
    logits = whole[:, first:last].contiguous().to(device).requires_grad_()
    loss = CrossEntropy.apply(logits, targets, first)
    loss.backward()
    squares = allfold.norm(logits.grad)  # of the gradient of all ranks

    if rank == 0:
        print(f"{tokens} tokens, {words} words, {ranks} rank{'s' if ranks > 1 else ''}, {device}: "
              f"loss {loss.item().hex()}, norm of the gradient {squares:.9g}")
    reference = whole.double().requires_grad_()
    expected = torch.nn.functional.cross_entropy(reference, targets.cpu())
    expected.backward()
    mine = reference.grad[:, first:last]
    wrong = abs(loss.item() - expected.item()) > 1e-12 * abs(expected.item()) or \
        not torch.allclose(logits.grad.cpu().double(), mine, rtol=1e-5, atol=1e-9)
    if MPI.COMM_WORLD.allreduce(wrong, MPI.LOR):
        sys.exit("the loss or the gradient is not PyTorch's")


if __name__ == "__main__":
    main()
