"""Heat in a film with changing conductivity: a time step is one solve with multigrid.

    python examples/heat.py [cells] [steps] [executor]

A cold plate is heated by a hot disc. The material conducts better where it is hot, so the matrix
has new values in each step, in the same pattern. Algebraic multigrid is set up once: it keeps its
coarse rows and its interpolation, and `update` makes the rest anew. The film strip is in heat.png.
"""

import sys
import time

import numpy as np
import scipy.sparse as sp

import wollemi as wl


class Plate:
    """Backward Euler steps of du/dt = div(k(u) grad u) on square cells with an insulated rim."""

    def __init__(self, cells: int) -> None:
        number = np.arange(cells * cells).reshape(cells, cells)
        pairs = [(np.s_[:, :-1], np.s_[:, 1:]), (np.s_[:-1], np.s_[1:])]
        self.i = np.concatenate([number[a].ravel() for a, b in pairs])
        self.j = np.concatenate([number[b].ravel() for a, b in pairs])
        self.cells = cells

    def matrix(self, u: np.ndarray, step: float) -> sp.csr_array:
        """Return I + step L for the conductivities of the temperatures ``u``."""
        k = 1.0 + 99.0 * u.ravel() ** 3
        g = step * self.cells**2 * 2 * k[self.i] * k[self.j] / (k[self.i] + k[self.j])
        n = u.size
        couplings = sp.coo_array((g, (self.i, self.j)), shape=(n, n))
        couplings = couplings + couplings.T
        made = sp.csr_array(sp.diags_array(1.0 + couplings.sum(axis=1)) - couplings)
        made.sort_indices()
        return made


def film(frames: list[np.ndarray], times: list[float], path: str) -> None:
    """Draw the temperatures side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(frames), 2.7), layout="constrained")
    axes = figure.subplots(1, len(frames), squeeze=False)[0]
    for axis, frame, when in zip(axes, frames, times, strict=True):
        picture = axis.imshow(frame, cmap="inferno", vmin=0, vmax=1, origin="lower")
        axis.set_title(f"t = {when:.3g}", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.colorbar(picture, ax=list(axes), label="temperature", shrink=0.85)
    figure.savefig(path, dpi=110)


def main(cells: int = 96, steps: int = 12, executor: str = "omp") -> int:
    plate = Plate(cells)
    y, x = np.mgrid[0 : 1 : cells * 1j, 0 : 1 : cells * 1j]
    u = ((x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.04).astype(float)
    step = 2e-4
    A = wl.Csr(plate.matrix(u, step), executor=executor)
    solver = wl.solvers.Cg(A, M=wl.preconditioners.Amg(theta=0.25), rtol=1e-8)
    print(solver.M)
    frames, times, heat = [u], [0.0], u.sum()
    for number in range(1, steps + 1):
        began = time.perf_counter()
        A.update_values(A.executor.from_host(plate.matrix(u, step).data))
        solver.update()
        updated = time.perf_counter() - began
        result = solver.solve(u.ravel(), x0=u.ravel())
        u = result.x.reshape(u.shape)
        print(
            f"step {number:>3}: update {1e3 * updated:6.1f} ms, {result.iterations:>2} iterations "
            f"in {1e3 * result.seconds:6.1f} ms, {result.reason.partition(':')[0]}"
        )
        if number % max(steps // 4, 1) == 0:
            frames.append(u)
            times.append(number * step)
    film(frames[:6], times[:6], "heat.png")
    print(
        f"The heat of the plate changed by {abs(u.sum() / heat - 1):.1e}; the film is in heat.png."
    )
    return 0 if result.converged else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(*map(int, arguments[:2]), *arguments[2:]))
