"""Products of matrices and vectors beside cuSPARSE and the bounds of the memory, from the records.

A part of the page :mod:`website.how_fast`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from .speed import RESULTS

#: The records of the suite shapes, and their device.
FILE, DEVICE = "structure-h200.jsonl", "one NVIDIA H200"

#: Names in records of libraries that call cuSPARSE.
CUSPARSE = ("cupy", "torch")

#: Bytes of an entry in float64 with 32-bit indices, and of the sector of the L2 in which its
#: element of x lies.
ENTRY, SECTOR = 12, 32

#: The matrices in words, by the generator of the case.
FAMILIES = {
    "dense-blocks": "dense blocks of 500 rows",
    "shuffled": "7 points, rows in another order",
    "tetrahedra": "mesh of tetrahedra",
    "flat-rmat": "R-MAT graph",
    "two-sorts": "two lengths of rows, random columns",
    "lognormal": "lognormal rows, random columns",
}


@dataclass(frozen=True)
class Product:
    """The times of one family of matrices, medians over the seeds.

    Attributes
    ----------
    family : str
        In words.
    entries : int
        Of a matrix.
    wollemi, cusparse : float
        Microseconds of wollemi and of the faster call of cuSPARSE.
    share : float
        The time of reading the bytes of the operation once, over the time of wollemi.
    """

    family: str
    entries: int
    wollemi: float
    cusparse: float
    share: float

    @property
    def ratio(self) -> float:
        """The time of cuSPARSE over that of wollemi."""
        return self.cusparse / self.wollemi

    @property
    def largest_ratio(self) -> float:
        """The ratio of a product that takes no longer than reading its bytes once."""
        return self.ratio / self.share

    def sectors(self, microseconds: float) -> float:
        """Return TB/s through the L2 if each entry reads a sector of its own."""
        return 1e-6 * (ENTRY + SECTOR) * self.entries / microseconds


def _contests() -> dict[str, list[dict[str, dict[str, Any]]]]:
    """Return the timed products of each family, by run and library."""
    runs: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for text in (RESULTS / FILE).read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if line.get("suite") == "shapes" and line["benchmark"] == "spmv" and line["seconds"]:
            runs.setdefault((line["run"], line["case"]), {})[line["contender"]] = line
    found: dict[str, list[dict[str, dict[str, Any]]]] = {}
    for (_, case), contest in runs.items():
        found.setdefault(case.partition(":")[0], []).append(contest)
    return found


def products() -> list[Product]:
    """Return the products, the largest ratios first."""
    made = []
    for family, contests in _contests().items():
        seconds = [
            min(contest[name]["seconds"] for name in CUSPARSE if name in contest)
            for contest in contests
        ]
        mine = [contest["wollemi"] for contest in contests]
        made.append(
            Product(
                family=FAMILIES[family],
                entries=int(median(line["entries"] for line in mine)),
                wollemi=1e6 * median(line["seconds"] for line in mine),
                cusparse=1e6 * median(seconds),
                share=median(line["share"] for line in mine),
            )
        )
    return sorted(made, key=lambda product: -product.ratio)


def table() -> str:
    """Return the table."""
    lines = [
        "| matrix | entries | wollemi, us | cuSPARSE, us | ratio | share of the bound | ratio at "
        "the bound | L2, TB/s: wollemi | cuSPARSE |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in products():
        cells = [
            one.family,
            f"{one.entries:,}",
            f"{one.wollemi:.1f}",
            f"{one.cusparse:.1f}",
            f"{one.ratio:.2f}",
            f"{one.share:.2f}",
            f"{one.largest_ratio:.2f}",
            f"{one.sectors(one.wollemi):.1f}",
            f"{one.sectors(one.cusparse):.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def section() -> str:
    """Return the section of the page."""
    mean = geometric_mean(product.ratio for product in products())
    return "\n".join(
        [
            f"## Products of a matrix and a vector on {DEVICE}",
            "",
            "`A @ x` in float64 by the plan that wollemi chooses, and by cuSPARSE as the faster of "
            "CuPy and PyTorch calls it;",
            f"medians over four seeds. The geometric mean of the ratios is {mean:.2f}.",
            "",
            table(),
            "",
            "The *bound* is the time of reading every byte of the operation once, measured in the "
            "same rounds; *ratio at the bound* is",
            "the ratio of a product that takes no longer. *L2* counts 12 bytes of each entry and a "
            f"sector of {SECTOR} bytes for its element of x.",
            "Where columns are random, each entry reads a sector of its own, and these sectors "
            "take the time: both libraries move them",
            "equally fast, and the profiler shows the L2 at 97 % of its throughput at 5.7 TB/s "
            "([a power-law matrix](../benchmarks/results/cuda-h200.md)).",
            "Other matrices share sectors between entries, so that their rates here are above the "
            "traffic.",
        ]
    )
