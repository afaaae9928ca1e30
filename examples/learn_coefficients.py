"""Learn how well each part of a plate conducts heat, from temperatures measured at some points.

    python examples/learn_coefficients.py [steps] [cpu|cuda]

The plate is a grid of cells; between two cells heat flows in proportion to the geometric mean of
their conductivities. The steady temperatures solve ``A(c) u = q`` with a sparse matrix ``A``. The
gradient of the misfit with respect to all conductivities takes one more solve, for any number of
them. A small penalty on differences between cells makes the problem well posed. Needs PyTorch.
"""

import sys

import numpy as np
import torch

import wollemi as wl
from wollemi.interop.torch import solve

CELLS, SOURCES, PENALTY = 16, 16, 1e-6


def faces(n: int) -> np.ndarray:
    """Return the two cells of every face of an n x n grid, shape (2, faces)."""
    cell = np.arange(n * n).reshape(n, n)
    across = [cell[:, :-1].ravel(), cell[:, 1:].ravel()]
    down = [cell[:-1].ravel(), cell[1:].ravel()]
    return np.concatenate([across, down], axis=1)


class Plate(torch.nn.Module):
    """Temperatures of a plate as a function of its cells' conductivities, in logarithms."""

    def __init__(self, n: int, executor: str) -> None:
        super().__init__()
        first, second = ends = faces(n)
        count, cells = ends.shape[1], np.arange(n * n)
        # each face adds c to two entries of the diagonal and -c to two others; the plate loses heat
        rows = np.concatenate([first, second, first, second, cells])
        columns = np.concatenate([first, second, second, first, cells])
        matrix = wl.Csr((np.ones(rows.size), (rows, columns)), shape=(n * n, n * n))
        matrix.sort_indices()
        self.matrix = matrix.to(executor)
        indptr, indices = matrix.indptr, matrix.indices
        keys = np.repeat(cells, np.diff(indptr)) * n * n + indices
        entry = np.searchsorted(keys, rows * n * n + columns)
        self.register_buffer("entry", torch.from_numpy(entry[: 4 * count]))
        loss = np.zeros(matrix.nnz)
        loss[entry[4 * count :]] = 0.05
        self.register_buffer("loss", torch.from_numpy(loss))
        self.register_buffer("ends", torch.from_numpy(ends))
        self.log_conductivity = torch.nn.Parameter(torch.zeros(n * n, dtype=torch.float64))

    def roughness(self) -> torch.Tensor:
        return self.log_conductivity[self.ends].diff(dim=0).pow(2).sum()

    def forward(self, heat: torch.Tensor) -> torch.Tensor:
        c = self.log_conductivity[self.ends].mean(0).exp()
        values = self.loss.index_add(0, self.entry, torch.cat([c, c, -c, -c]))
        return solve(self.matrix, heat, values=values, solver="cg", M="jacobi", rtol=1e-10)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
    executor = "cuda" if device == "cuda" else "omp"
    torch.manual_seed(0)
    truth, model = (Plate(CELLS, executor).to(device) for _ in range(2))
    x, y = np.divmod(np.arange(CELLS**2), CELLS)
    inclusion = (x - 6) ** 2 + (y - 9) ** 2 < 10
    with torch.no_grad():  # a disc that conducts ten times worse
        truth.log_conductivity[torch.from_numpy(inclusion).to(device)] = np.log(0.1)
    heat = torch.zeros(CELLS**2, SOURCES, dtype=torch.float64, device=device)
    heat[torch.randperm(CELLS**2)[:SOURCES], torch.arange(SOURCES)] = 1.0  # one at a time
    measured = torch.randperm(CELLS**2)[: CELLS**2 // 2].to(device)
    with torch.no_grad():
        temperatures = truth(heat)[measured]

    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=steps, line_search_fn="strong_wolfe")
    misfits = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        misfit = (model(heat)[measured] - temperatures).pow(2).sum() / temperatures.pow(2).sum()
        loss = misfit + PENALTY * model.roughness()
        loss.backward()
        misfits.append(misfit.item())
        return loss

    optimizer.step(closure)
    found = model.log_conductivity.detach().cpu().numpy()
    inside, outside = (np.exp(found[where].mean()) for where in (inclusion, ~inclusion))
    print(f"{found.size} conductivities from {measured.numel() * SOURCES} measured temperatures")
    print(f"misfit {misfits[0]:.1e} -> {misfits[-1]:.1e} in {len(misfits)} evaluations")
    print(f"conductivity inside of the disc {inside:.2f} (0.10), outside {outside:.2f} (1.00)")
    assert misfits[-1] < 1e-2 * misfits[0] and inside < 0.5 * outside


main()
