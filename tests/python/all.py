"""All checks that the ranks make together, in one process each, as MPI takes long to start."""
import arrays
import axes
import begun
import communicators
import files
import folds
import log_probs
import many
import order

folds.check()
order.check()
arrays.check()
axes.check()
log_probs.check()
begun.check()
many.check()
files.check()
communicators.check()
