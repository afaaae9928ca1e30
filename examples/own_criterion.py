"""A criterion of your own, and a logger that counts: the end of a solve, and its cost."""

import numpy as np

import wollemi as wl


class EnoughIsEnough(wl.stop.Criterion):
    """Ends a solve when the last iterations brought little, or after a minute."""

    every = 25  # iterations between two questions

    def __init__(self, factor: float = 0.9) -> None:
        self.factor = factor
        self.last = np.inf

    def done(self, state: wl.stop.State) -> bool:
        """Return whether to end; wollemi asks every 25 iterations."""
        norm = float(state.norm.max())
        little = norm > self.factor * self.last and state.iteration > self.every
        self.last = norm
        return little or state.seconds > 60


def main() -> None:
    """Solve an ill-conditioned system for as long as it pays."""
    A = wl.Csr(np.diag(np.geomspace(1e-12, 1.0, 400)))
    stop = wl.stop.RelativeResidual(1e-14) | EnoughIsEnough()
    counts = wl.loggers.Counts()
    result = wl.solvers.Cg(A, stop=stop).solve(np.ones(400), loggers=[counts])
    print(result.reason)
    print(f"{result.iterations} iterations, {counts.applications['A']} products")
    assert counts.applications["A"] >= result.iterations


if __name__ == "__main__":
    main()
