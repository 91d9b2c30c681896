#!/usr/bin/env python3
"""Vocabulary-parallel cross-entropy: each rank has the logits of some words of the vocabulary, for all tokens, and no rank ever has
a whole row. Loss and gradient have the same bits on any number of ranks; they are compared with PyTorch's on one.

    mpirun -n 4 python3 -m mpi4py 06_cross_entropy.py [TOKENS WORDS]

Needs PyTorch and mpi4py. On GPUs each rank uses the one of its number."""
import sys

import torch
from mpi4py import MPI

import allfold

COLUMNS = {"axis": 1, "cut": 1}  # rows run along the vocabulary, which is what the ranks share out


class CrossEntropy(torch.autograd.Function):
    """The mean over tokens of -log_prob of the target. logits: tokens x this rank's words; targets: the word of each token in the whole
    vocabulary, on every rank."""

    @staticmethod
    def forward(context, logits, targets):
        logits = logits.detach()
        found = allfold.log_probs(logits, targets, **COLUMNS, outputs=("log_prob", "logsumexp"))
        context.save_for_backward(logits, targets, found.logsumexp)
        return torch.tensor(-allfold.sum(found.log_prob, comm=MPI.COMM_SELF) / len(targets), dtype=torch.float64)

    @staticmethod
    def backward(context, gradient):
        logits, targets, logsumexp = context.saved_tensors
        scale = torch.full_like(logsumexp, gradient.item() / len(targets))
        return allfold.log_probs_gradient(logits, targets, logsumexp, scale, **COLUMNS), None


def main():
    rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
    tokens, words = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (64, 5000)
    device = f"cuda:{rank % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(1)
    whole = 4 * torch.randn(tokens, words, generator=generator)  # the same on every rank
    targets = torch.randint(words, (tokens,), generator=generator).to(device)

    first, last = words * rank // ranks, words * (rank + 1) // ranks
    logits = whole[:, first:last].contiguous().to(device).requires_grad_()
    loss = CrossEntropy.apply(logits, targets)
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
