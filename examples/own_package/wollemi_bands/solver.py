"""Richardson's iteration with momentum, the heavy ball."""

import wollemi as wl
from wollemi.extend import NOT_FINITE, Steps, finite, norm2, sqrt

step = Steps("heavyball", vectors="x r z d q", numbers="omega momentum")


@step
def rest(w):
    """Set d = 0."""
    w.d = 0


@step
def push(w):
    """Set d = omega z + momentum d, x += d."""
    pushed = w.omega * w.z + w.momentum * w.d
    w.x += pushed
    w.d = pushed


@step
def follow(w):
    """Set r -= q; observes |r|."""
    left = w.r - w.q
    w.r = left
    w.observe(sqrt(norm2(left)))
    w.halt(NOT_FINITE, when=~finite(norm2(left)))


class HeavyBall(wl.solvers.KrylovSolver):
    """Richardson's iteration with momentum, for positive definite matrices."""

    def __init__(self, A, M=None, *, omega=0.4, momentum=0.6, **options):
        super().__init__(A, M, **options)
        if not (omega > 0 and 0 <= momentum < 1):
            raise wl.errors.InvalidArgument(
                f"expected omega > 0 and 0 <= momentum < 1, got {omega} and {momentum}"
            )
        self.omega, self.momentum = omega, momentum

    def allocate(self, work):
        """Make the arrays; without M, z is r."""
        if work.M is None:
            work.z = work.r
        work.omega, work.momentum = self.omega, self.momentum
        work.make(step)

    def initialize(self, work):
        """Begin at rest."""
        rest(work)

    def iterate(self, work):
        """Make one step."""
        if work.M is not None:
            work.M.apply_block(work.r, work.z, 1.0, 0.0)
        push(work)
        work.A.apply_block(work.d, work.q, 1.0, 0.0)
        follow(work)
