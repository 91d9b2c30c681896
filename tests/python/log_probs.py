"""Log-probabilities and their gradient beside NumPy, with tokens or words cut into the ranks' parts; and what is refused."""
import numpy as np

import allfold
from ranks import MPI, ok, parts, rank, refused

TOKENS, WORDS = 11, 37
LOGITS = (np.random.default_rng(5).standard_normal((TOKENS, WORDS)) * 4).astype(np.float32)
TARGETS = np.arange(TOKENS) * 7 % WORDS
TARGETS[3] = -100
SELF = MPI.COMM_SELF if MPI else None
SCALE = np.linspace(-1, 2, TOKENS)


def expected():
    x = LOGITS.astype(float)
    logsumexp = np.log(np.exp(x).sum(1))
    log = x - logsumexp[:, None]
    taken = TARGETS != -100
    log_prob = np.where(taken, log[np.arange(TOKENS), np.where(taken, TARGETS, 0)], 0)
    slopes = np.exp(log)
    slopes[np.arange(TOKENS)[taken], TARGETS[taken]] -= 1
    return log_prob, logsumexp, -(np.exp(log) * log).sum(1), x.argmax(1), slopes * np.where(taken, SCALE, 0)[:, None]


def part(whole, cut):
    return np.moveaxis(parts(np.moveaxis(whole, cut, 0)), 0, cut).copy(order="C")


def check_values():
    log_prob, logsumexp, entropy, argmax, slopes = expected()
    everything = ("log_prob", "logsumexp", "entropy", "argmax")
    alone = allfold.log_probs(LOGITS, TARGETS, comm=SELF, outputs=everything)
    wrong = [name for name, due in zip(everything, (log_prob, logsumexp, entropy, argmax)) if not np.allclose(getattr(alone, name), due, rtol=1e-7)]
    ok(not wrong and alone.log_prob[3] == 0 and alone.argmax.dtype == np.int64, "log-probabilities, logsumexp, entropy, argmax", wrong)
    wrong = []
    for cut in 0, 1:
        x, mine = part(LOGITS, cut), [parts(a) if cut == 0 else a for a in (TARGETS, alone.logsumexp, SCALE)]
        found = allfold.log_probs(x, mine[0], cut=cut, outputs=everything)
        wrong += [(cut, name) for name in everything if not np.array_equal(getattr(found, name), getattr(alone, name))]
        own = allfold.log_probs(x, mine[0], cut=cut, outputs=["entropy"], own=True)
        wrong += [(cut, "own")] * (own.log_prob is not None or (cut == 0 and not np.array_equal(own.entropy, parts(alone.entropy))))
        strided = allfold.log_probs(np.ascontiguousarray(x.T).T, mine[0], cut=cut).log_prob
        wrong += [(cut, "other strides")] * (not np.array_equal(strided, alone.log_prob))
        columns = allfold.log_probs(np.ascontiguousarray(x.T), mine[0], axis=0, cut=1 - cut).log_prob
        wrong += [(cut, "columns")] * (not np.array_equal(columns, alone.log_prob))
        wrong += [(cut, "gradient")] * (not np.allclose(allfold.log_probs_gradient(x, *mine, cut=cut), part(slopes, cut), rtol=1e-6, atol=1e-7))
        turned = allfold.log_probs_gradient(np.asfortranarray(x), *mine, cut=cut)
        wrong += [(cut, "gradient of other strides")] * (not np.allclose(turned, part(slopes, cut), rtol=1e-6, atol=1e-7))
        allfold.log_probs_gradient(x, *mine, cut=cut, out=x)
        wrong += [(cut, "in place")] * (not np.allclose(x, part(slopes, cut), rtol=1e-6, atol=1e-7))
    ok(not wrong, "the same bits with tokens and with words cut; gradients", wrong)
    fast = allfold.log_probs(LOGITS, TARGETS, comm=SELF, level="fast")
    ok(np.allclose(fast.log_prob, log_prob, atol=1e-5) and fast.argmax is None, "level fast")
    ok(allfold.log_probs(LOGITS, comm=SELF, outputs=iter(["argmax", "entropy"])).entropy is not None, "outputs that can be read once")
    ok(allfold.log_probs(LOGITS, comm=SELF).log_prob is None, "no targets, no log_prob")
    ok(allfold.log_probs(LOGITS[:0], [], comm=SELF).log_prob.size == 0, "no rows, and a list of no targets")


def check_refusals():
    targets, x = parts(TARGETS), part(LOGITS, 0)
    rows = MPI.COMM_WORLD.allgather(len(x)) if MPI else [len(x)]
    last = rank == max(r for r in range(len(rows)) if rows[r] > 0)  # that has any
    sums = np.zeros(len(targets))
    memory = np.zeros(x.size + 1, x.dtype)
    shared = memory[1:].reshape(x.shape), memory[:-1].reshape(x.shape)
    for what, words, call in (("targets of another shape", "one for each", lambda: allfold.log_probs(x, targets[None] if last else targets)),
                       ("targets of floats", "float64: expected int64", lambda: allfold.log_probs(x, targets.astype(float) if last else targets)),
                       ("targets beyond int64", "expected int64", lambda: allfold.log_probs(x, targets.astype(np.uint64) | np.uint64(2**63) if last else targets)),
                       ("an output that does not exist", "expected some of", lambda: allfold.log_probs(x, targets, outputs=["mean"] if last else ["entropy"])),
                       ("one element for a whole row", "rows at one distance", lambda: allfold.log_probs(np.broadcast_to(x[:, :1], x.shape) if last else x, targets)),
                       ("two axes", "expected one axis", lambda: allfold.log_probs(x, targets, axis=(0, 1) if last else -1)),
                       ("logsumexp of another shape", "one for each", lambda: allfold.log_probs_gradient(x, targets, sums[None] if last else sums)),
                       ("an ignore_index that is no integer", "ignore_index", lambda: allfold.log_probs(x, targets, ignore_index=2.5 if last else 2)),
                       ("one beyond int64", "ignore_index", lambda: allfold.log_probs(x, targets, ignore_index=2**63 if last else 2)),
                       ("an overlap", "overlaps", lambda: allfold.log_probs_gradient(shared[1], targets, sums, out=shared[not last])),
                       ("a target out of range", "its target is no index along the axis", lambda: allfold.log_probs(x, np.where(rank == 0, WORDS, targets))),
                       ("a target in a row of nothing", "which has no elements: expected", lambda: allfold.log_probs(np.zeros((1, 0)), [0], cut=1)),
                       ("integers", "not int32", lambda: allfold.log_probs(x.astype(np.int32) if last else x, targets))):
        refused(what, [allfold.ArgumentError], [words], call)


def check():
    check_values()
    check_refusals()
