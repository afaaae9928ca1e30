"""Which Krylov solver for which matrix: the products that each takes, and a decision picture.

Run as ``python choosing_a_solver.py [PICTURE.png]``; the picture needs matplotlib.
"""

import sys

import numpy as np
import scipy.sparse as sp

import wollemi as wl


def line(n, below, middle, above):
    """Return a tridiagonal matrix."""
    return sp.diags_array([below, middle, above], offsets=[-1, 0, 1], shape=(n, n))


def diffusion(n=30):
    """Return the Laplacian on n x n points: symmetric positive definite."""
    return sp.csr_array(sp.kronsum(line(n, -1.0, 2.0, -1.0), line(n, -1.0, 2.0, -1.0)))


def saddle(n=20):
    """Return a Stokes-like saddle point matrix: symmetric indefinite."""
    K = diffusion(n)
    B = sp.csr_array(sp.kron(sp.eye_array(n), line(n, 0.0, 1.0, -1.0)))[::3]
    return sp.csr_array(sp.block_array([[K, B.T], [B, None]]))


def convection(n=30, wind=0.9):
    """Return diffusion with a strong wind: not symmetric."""
    across = line(n, -1.0 - wind, 2.0, -1.0 + wind)
    return sp.csr_array(sp.kronsum(across, across))


def helmholtz(n=30):
    """Return a shifted Laplacian with damping: complex symmetric, indefinite."""
    return sp.csr_array(diffusion(n) + (-0.6 + 0.1j) * sp.eye_array(n * n))


SYSTEMS = {
    "diffusion": diffusion,
    "saddle point": saddle,
    "convection": convection,
    "damped waves": helmholtz,
}
METHODS = {
    "Cg": wl.solvers.Cg(),
    "Minres": wl.solvers.Minres(),
    "Bicgstab": wl.solvers.Bicgstab(),
    "Tfqmr": wl.solvers.Tfqmr(),
    "Idr": wl.solvers.Idr(),
    "Gmres": wl.solvers.Gmres(restart=30),
    "Lgmres": wl.solvers.Lgmres(restart=30),
    "Gcrotmk": wl.solvers.Gcrotmk(restart=15, k=15),
}
#: Products of an iteration.
PRODUCTS = {"Bicgstab": 2, "Tfqmr": 2, "Idr": 5}


def table():
    """Print a table of the products that each method takes to a residual of 1e-8."""
    print("| | " + " | ".join(f"`{name}`" for name in METHODS) + " |")
    print("| --- |" + " --- |" * len(METHODS))
    for name, make in SYSTEMS.items():
        S = make()
        A = wl.Csr(S)
        b = S @ np.ones(S.shape[0])
        cells = []
        for method, settings in METHODS.items():
            result = settings.replace(rtol=1e-8, maxiter=1500).on(A).solve(b)
            count = result.iterations * PRODUCTS.get(method, 1)
            cells.append(str(count) if result.converged else result.stops[0].name.lower())
        print(f"| {name}, {S.shape[0]} unknowns | " + " | ".join(cells) + " |")


#: Boxes of the picture: text, centre, and the next box for each answer.
QUESTIONS = {
    "square": ("is A square?", (0.5, 0.94), {"yes": "hermitian", "no": "lsmr"}),
    "hermitian": ("is A Hermitian?", (0.5, 0.78), {"yes": "definite", "no": "varies"}),
    "definite": ("positive definite?", (0.22, 0.6), {"yes": "cg", "no": "minres"}),
    "varies": ("does M vary?", (0.72, 0.6), {"yes": "fgmres", "no": "memory"}),
    "memory": ("memory for 30\nvectors, or M good?", (0.78, 0.4), {"yes": "gmres", "no": "idr"}),
}
ANSWERS = {
    "lsmr": ("least squares", (0.88, 0.94)),
    "cg": ("Cg; Fcg if M varies;\nPipeCg on many devices", (0.1, 0.36)),
    "minres": ("Minres", (0.34, 0.36)),
    "fgmres": ("Fgmres", (0.53, 0.36)),
    "gmres": ("Gmres; Lgmres or Gcrotmk\nif it stagnates", (0.62, 0.14)),
    "idr": ("Bicgstab; Idr or Tfqmr\nif it is erratic", (0.9, 0.14)),
}


def draw(path):
    """Draw the decision into a file."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.2), dpi=110)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    places = {name: place for name, (_, place, _) in QUESTIONS.items()}
    places |= {name: place for name, (_, place) in ANSWERS.items()}
    box = {"boxstyle": "round,pad=0.45", "edgecolor": "0.35"}
    centred = {"ha": "center", "va": "center"}
    boxes = {}
    for name, (text, place, _) in QUESTIONS.items():
        boxes[name] = axes.text(*place, text, bbox={**box, "facecolor": "#eef3fb"}, **centred)
    for name, (text, place) in ANSWERS.items():
        boxes[name] = axes.text(*place, text, bbox={**box, "facecolor": "#e9f6ec"}, **centred)
    figure.canvas.draw()  # boxes have their sizes from here on; arrows end at them
    for name, (_, place, ways) in QUESTIONS.items():
        for answer, to in ways.items():
            ends = {"patchA": boxes[name].get_bbox_patch(), "patchB": boxes[to].get_bbox_patch()}
            style = {"arrowstyle": "-|>", "color": "0.3", "shrinkA": 2, "shrinkB": 2}
            axes.annotate("", places[to], place, arrowprops={**style, **ends})
            x, y = (0.5 * a + 0.5 * c for a, c in zip(place, places[to], strict=True))
            plain = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
            axes.text(x, y, answer, fontsize=9, color="0.2", bbox=plain, **centred)
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    table()
    if len(sys.argv) > 1:
        draw(sys.argv[1])
