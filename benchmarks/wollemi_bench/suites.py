"""Named suites: the contests of ``make bench``, and the tables of papers.

A suite is divided by a scale, so that it fits the machine: at 1 it has the sizes of its paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wollemi.core.errors import InvalidArgument
from wollemi.core.executor import Executor

from . import ml, solve, spmv, work
from .cases import Case, cases, grown
from .contest import Settings
from .drawn import names_of_collection
from .matrices import FILES, GRAPH, LAYERS, Matrices
from .problem import GPUS
from .published_rules import RULES
from .standins import MODELS
from .task import Task
from .timing import BATCH_SECONDS

#: Seconds of a batch where there are many contests.
SHORT = 0.01

#: Rounds of a contest of a suite, if its budget lasts for them.
BATCHES = 7

#: Seconds of a contest on a GPU, where seven rounds of nine contenders took 0.25 s (H200): only who
#: needs a tenth of a second for a call has fewer.
GPU_BUDGET = 2.0

#: The seed of families that are drawn from, if no other is asked for.
DRAWN = 1

#: The number of drawn matrices in the suite collection.
DRAWN_MATRICES = 200

#: Processes that compute together with a CPU's contenders: one for each core of the records'
#: machine.
BUSY = 2

#: The graphs of the SDDMM study, of the group Pajek in the SuiteSparse collection, and the kernels
#: that are timed on them: kernels that compute dense tiles would take minutes.
GRAPHS = ("IMDB", "patents_main", "patents")
OF_GRAPHS = ("entry", "flat", "row-split", "row-segments")
OF_SM_L2 = ("sm-l2-32", "sm-l2", "sm-l2-128", "sm-l2-256")


@dataclass(frozen=True)
class Job:
    """A part of a suite: an operation on cases.

    Attributes
    ----------
    operation : str
        ``spmv``, ``solve``, ``overhead``, ``spmm``, ``sddmm``, ``fusedmm``, ``work`` or ``first``.
    names : tuple of str
        Of cases.
    options : dict
        Further options of the operation's ``run``.
    grow, cold : bool
        Over sizes; with cold caches.
    busy : int
        On a CPU, timed again with this number of busy processes.
    drawn : bool
        The seed of the run is the last number of each case.
    """

    operation: str
    names: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    grow: bool = False
    cold: bool = False
    busy: int = 0
    drawn: bool = False


@dataclass(frozen=True)
class Suite:
    """A named set of measurements.

    Attributes
    ----------
    summary : str
        Its description, in a sentence.
    jobs : callable
        Takes a scale and the number of iterations of a solve, and returns the parts.
    cpu, gpu : int
        The usual scale there.
    iterations : int
        Of a solve, at scale 1.
    budget, batch_seconds : float
        Of a contest, and of a batch.
    weight : float
        Its share of the time, where that is limited: half a minute or so on two cores.
    without : tuple of str
        Peers that are not asked: each call is compiled anew for each matrix.
    alone : bool
        Whether it is left out of ``all``.
    paper : dict or None
        The data of each record on the paper: see :class:`~.report.Record`.
    """

    summary: str
    jobs: Callable[[int, int], list[Job]]
    cpu: int = 1
    gpu: int = 1
    iterations: int = solve.ITERATIONS
    budget: float = 2.0
    batch_seconds: float = BATCH_SECONDS
    weight: float = 1.0
    without: tuple[str, ...] = ()
    alone: bool = False
    paper: dict[str, Any] | None = None

    def scale(self, executor: Executor) -> int:
        """Return the usual scale on an executor."""
        return self.gpu if executor.backend in GPUS else self.cpu

    def settings(self, executor: Executor) -> Settings:
        """Return how long its contests take; a GPU's batches are so short that all have time."""
        budget = GPU_BUDGET if executor.backend in GPUS else self.budget
        return Settings(BATCHES, self.batch_seconds, budget)


def _usual(scale: int, iterations: int) -> list[Job]:
    del iterations
    # products of these sizes take milliseconds everywhere, solves take seconds on two cores
    unknowns = f"stencil7:{round(100 / scale ** (1 / 3))}"
    graphs = ("rmat:16,1000000", "blocks:50000,32,1000000")
    layer = ("pruned:2048,2048,90",)
    return [
        Job(
            "spmv",
            (
                *("stencil5:1000", "stencil7:100", "stencil9:1000", "stencil27:80", "fem:30"),
                *("circuit:500000", "rmat:18,4000000", "blocks:200000,64,4000000"),
                *("uniform:500000,500000,5000000", "hypersparse:4000000,1000000"),
            ),
        ),
        Job("spmv", ("stencil7:100", "rmat:18,4000000"), cold=True),
        Job("spmv", ("stencil5:100", "stencil5:500"), busy=BUSY),
        Job("overhead"),
        Job("solve", (unknowns,)),
        Job("solve", ("stencil5:250", "stencil5:500"), {"methods": ("cg",)}, busy=BUSY),
        Job("spmm", (*layer, *graphs), {"columns": (32, 128)}),
        Job("sddmm", (*layer, graphs[0]), {"columns": (128,)}),
        Job("fusedmm", (*layer, graphs[0]), {"columns": (128,)}),
    ]


def _growth(scale: int, iterations: int) -> list[Job]:
    del scale, iterations
    return [
        Job("spmv", ("stencil7:100", "rmat:18,4000000"), grow=True),
        Job("solve", ("stencil7:100",), {"methods": ("cg",)}, grow=True),
        Job("spmm", ("rmat:16,1000000",), {"columns": (64,)}, grow=True),
    ]


def _ginkgo(scale: int, iterations: int) -> list[Job]:
    names = tuple(f"like:{name}/{scale}" for name in MODELS)
    return [
        Job("spmv", names, {"others": ("coo",)}),
        Job("solve", names, {"iterations": iterations}),
    ]


def _esimd(scale: int, iterations: int) -> list[Job]:
    del iterations
    names = tuple(
        f"weights:{gates * width // scale},{width // scale},{percent}"
        for gates in (1, 3, 4)
        for width in (1024, 2048, 4096, 8192)
        for percent in (70, 80, 90)
    )
    options = {"columns": (32, 128)}
    return [Job(operation, names, options) for operation in ("spmm", "sddmm", "fusedmm")]


def _dgsparse(scale: int, iterations: int) -> list[Job]:
    del iterations
    names = (
        f"rmat:14,{200_000 // scale}",
        f"rmat:16,{1_000_000 // scale}",
        f"rmat:18,{4_000_000 // scale}",
        f"blocks:{100_000 // scale},32,{2_000_000 // scale}",
        f"uniform:{20_000 // scale},{20_000 // scale},{200_000 // scale}",
        f"uniform:{200_000 // scale},{200_000 // scale},{2_000_000 // scale}",
        "pruned:2048,2048,90",
    )
    options = {"columns": (1, 2, 4, 8, 32, 128), "every_kernel": True, "rules": tuple(RULES)}
    return [Job("spmm", names, options)]


def _dlmc(scale: int, iterations: int) -> list[Job]:
    del iterations
    layers = [
        f"pruned:{max(rows // scale, 64)},{max(columns // scale, 64)},{percent}"
        for rows, columns in ((512, 512), (2048, 512), (512, 2048), (2048, 1024))
        for percent in (90, 95, 98)
    ]
    options = {"columns": (256,), "every_kernel": True}
    return [
        Job("spmm", (LAYERS, *layers), options | {"dtype": dtype})
        for dtype in ("float32", "float16")
    ]


def _sddmm(scale: int, iterations: int) -> list[Job]:
    del iterations
    n, nnz = 16384 // scale, 1_000_000 // scale
    graph = (f"rmat:16,{nnz}", f"uniform:65536,65536,{nnz}")  # and equally many entries anywhere
    # 0.99 to 0.9999 zeros
    sparse = (f"uniform:{n},{n},{round(n * n * s)}" for s in (1e-2, 5e-3, 1e-3, 5e-4, 1e-4))
    names = (*graph, *sparse)
    jobs = [Job("sddmm", names, {"columns": (32, 128, 256, 512), "every_kernel": True})]
    if scale == 1:  # files cannot be divided
        options = {"columns": (32, 128, 256), "kernels": (*OF_GRAPHS, *OF_SM_L2)}
        jobs.append(Job("sddmm", tuple(GRAPH + name for name in GRAPHS), options))
    return jobs


def _first_minutes(scale: int, iterations: int) -> list[Job]:
    del iterations
    rows, side = 2_000_000 // scale, round((1_000_000 / scale) ** (1 / 3))
    small = ("stencil5:32", f"stencil7:{side}")
    return [
        # no method without a preconditioner solves with the first in any time
        Job("first", (f"two-sorts:{rows // 4},8,1",), {"calls": ("product",)}),
        Job("first", (f"stencil7:{side}",)),
        Job("spmv", ("stencil5:32", "stencil5:100")),
        Job("work", small, {"pieces": ("fixed",)}),
        Job("solve", ("stencil7:16", "stencil7:32"), {"methods": ("cg",)}),
    ]


def _structure(scale: int, iterations: int) -> list[Job]:
    del iterations
    n = 1_000_000 // scale
    names = (f"stencil7:{round(n ** (1 / 3))}", f"uniform:{n // 2},{n // 2},{4 * n}")
    return [Job("work", names, {"pieces": ("structure",)})]


def _shapes(scale: int, iterations: int) -> list[Job]:
    del iterations
    names = (
        f"dense-blocks:{max(64 // scale, 1)},500",
        f"lognormal:{1_000_000 // scale},20",
        f"two-sorts:{1_500_000 // scale},8",
        f"flat-rmat:18,{4_000_000 // scale}",
        f"tetrahedra:{400_000 // scale}",
        f"shuffled:{round(100 / scale ** (1 / 3))}",
    )
    return [Job("spmv", names, drawn=True)]


def _collection(scale: int, iterations: int) -> list[Job]:
    del iterations
    return [Job("spmv", (FILES, *names_of_collection(DRAWN_MATRICES, scale)))]


def _everything(scale: int, iterations: int) -> list[Job]:
    del iterations
    n = 1_000_000 // scale
    names = (f"stencil7:{round(n ** (1 / 3))}", f"uniform:{n // 2},{n // 2},{5 * n}")
    every = [Job("work", names, {"pieces": ("product",)})]
    for dtype in ("float32", "complex128"):
        some = ("product/ell", "product/coo", "product/block, C order", "product/A.T @ x")
        every.append(Job("work", names[:1], {"pieces": some, "dtype": dtype}))
    return every


def _paper(source: str, hardware: str, figure: str, **value: Any) -> dict[str, Any]:
    return {"source": source, "hardware": hardware, "figure": figure, "value": None} | value


SUITES = {
    "usual": Suite(
        "an overview: products, solvers, kernels of learning",
        _usual,
        cpu=4,
        weight=4.0,
    ),
    "first-minutes": Suite(
        "first calls with empty caches, small products and solves: fixed costs",
        _first_minutes,
        cpu=8,
        weight=2.0,
    ),
    "structure": Suite(
        "sparse products, sums, transposes, coordinates, files",
        _structure,
        cpu=4,
        weight=1.0,
    ),
    "shapes": Suite(
        "SpMV on families that a seed draws from: no rule was made for them",
        _shapes,
        cpu=4,
        weight=1.0,
    ),
    "collection": Suite(
        "SpMV on all files of the folder of matrices and on 200 matrices of eight families",
        _collection,
        cpu=8,
        weight=4.0,
        budget=0.5,
        batch_seconds=SHORT,
        without=("jax",),
        alone=True,
    ),
    "everything": Suite(
        "products by every format, orientation and order of a block",
        _everything,
        cpu=4,
        weight=1.0,
        budget=1.0,
    ),
    "growth": Suite("times over sizes", _growth, weight=1.5, budget=1.0, without=("jax",)),
    "ginkgo-port": Suite(
        "stand-ins of ten SuiteSparse matrices: SpMV in CSR and COO, then long solves",
        _ginkgo,
        cpu=48,
        gpu=8,
        iterations=1000,
        budget=1.0,
        weight=5.0,
        without=("jax",),
        paper=_paper(
            "Tsai, Cojean, Anzt: Porting a sparse linear algebra math library to Intel GPUs, 2021",
            "Intel Gen9 and Gen12 GPUs",
            "drawn, not tabulated: time of SpMV, and of 1,000 iterations",
        ),
    ),
    "esimd-72": Suite(
        "weights of recurrent networks: three products of 36 matrices with 32 and 128 columns",
        _esimd,
        cpu=16,
        gpu=2,
        budget=1.2,
        batch_seconds=SHORT,
        weight=11.0,
        paper=_paper(
            "Zubair, Bauinger: Performance Optimization of Deep Learning Sparse Matrix Kernels "
            "on Intel Max Series GPU, 2023",
            "Intel Data Center GPU Max 1550; NVIDIA V100 for the CUDA code it is compared with",
            "drawn, not tabulated: time of spmm, sddmm and fusedmm",
        ),
    ),
    "dgsparse": Suite(
        "graphs with 1 to 128 columns, every kernel: losses of each rule and kernel",
        _dgsparse,
        cpu=8,
        gpu=1,
        weight=3.0,
        budget=1.2,
        batch_seconds=SHORT,
        paper=_paper(
            "Huang, Dai, Wang, Ding, Xie: Efficient Sparse Matrix Kernels based on Adaptive "
            "Workload-Balancing and Parallel-Reduction, 2021",
            "NVIDIA GPUs",
            "loss of the rule against the best kernel, on average over a device's matrices",
            value="5 to 12",
            unit="%",
        ),
    ),
    "tca-dlmc": Suite(
        "pruned layers with 256 columns, in float32 and float16",
        _dlmc,
        cpu=4,
        gpu=1,
        weight=2.0,
        budget=1.2,
        batch_seconds=SHORT,
        paper=_paper(
            "TCA-SpMM, Electronics 13(20), 3981, 2024",
            "NVIDIA GPUs with tensor cores",
            "drawn, not tabulated: time of spmm",
        ),
    ),
    "sddmm-study": Suite(
        "inner dimensions from 32 to 512 on sparse patterns, every kernel",
        _sddmm,
        cpu=8,
        gpu=1,
        weight=2.5,
        budget=1.2,
        batch_seconds=SHORT,
        paper=_paper(
            "Nisa, Sukumaran-Rajam, Kurt, Hong, Sadayappan: Sampled Dense Matrix Multiplication "
            "for High-Performance Machine Learning, 2018",
            "NVIDIA GPUs",
            "drawn, not tabulated: speed of SM-L2, one thread an entry, cuSPARSE",
        ),
    ),
}


def suite(name: str) -> Suite:
    """Return the suite of that name; raises InvalidArgument if there is none."""
    if name not in SUITES:
        raise InvalidArgument(f"no suite is called {name!r}; known: {', '.join(SUITES)}")
    return SUITES[name]


def chosen(job: Job, seed: int = DRAWN, matrices: Matrices | None = None) -> list[Case]:
    """Return the cases of a job; raises InvalidArgument if a name is none."""
    if job.drawn:
        return cases([f"{name},{seed}" for name in job.names])
    if job.grow:
        return [one for name in job.names for one in grown(name)]
    return (matrices or Matrices.usual()).cases(job.names)


def tasks_of(job: Job, seed: int = DRAWN, matrices: Matrices | None = None) -> list[Task]:
    """Return the contests of a job.

    Parameters
    ----------
    job : Job
        A part of a suite.
    seed : int
        Of families that are drawn from.
    matrices : Matrices, optional
        Where files are found that suites know by name.
    """
    if job.operation == "overhead":
        return solve.overhead()
    if job.operation == "spmv":
        return spmv.tasks(chosen(job, seed, matrices), **job.options)
    if job.operation == "work":
        return work.tasks(chosen(job, seed, matrices), **job.options)
    if job.operation == "first":
        return work.first_calls(chosen(job, seed, matrices), **job.options)
    if job.operation == "solve":
        return solve.tasks(chosen(job, seed, matrices), **job.options)
    return ml.tasks(job.operation, chosen(job, seed, matrices), **job.options)
