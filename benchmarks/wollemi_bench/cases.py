"""The matrices that are measured: generators, stand-ins of well-known ones, files, and SuiteSparse.

A case is named by a string: ``stencil7:100``, ``rmat:18,4000000``, ``like:thermal2/4``,
``ss:Schmid/thermal2``, or the path of a matrix file or of a folder of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from wollemi.core import io
from wollemi.core.errors import InvalidArgument

from . import drawn, generators, standins, stored_inputs, suitesparse
from .generators import SEED, Csr, compressed, stencil5

__all__ = ["CASES", "SEED", "Case", "Generator", "case", "cases", "grown", "read", "stencil5"]

#: How names of matrix files end.
ENDINGS = (".mtx", ".mtx.gz", stored_inputs.ENDING, ".npz", ".smtx", ".smtx.gz")


@dataclass(frozen=True)
class Case:
    """A named matrix, made when asked for.

    Attributes
    ----------
    name : str
        Its name in records.
    build : callable
        Makes it.
    family : str
        The generator's name, or "" for a file.
    path : Path or None
        Of a file: others may have its name in other folders.
    small : str
        The generated case that stands in for a large file where a smaller one is wanted, or "".
    """

    name: str
    build: Callable[[], Csr] = field(compare=False)
    family: str = ""
    path: Path | None = None
    small: str = field(default="", compare=False)

    def matrix(self, dtype: str = "float64") -> Csr:
        """Return the matrix with values of ``dtype``; a complex matrix stays complex."""
        made: Any = self.build()
        wanted = np.result_type(dtype, np.complex64) if made.dtype.kind == "c" else np.dtype(dtype)
        return cast(Csr, made.astype(wanted))


def _power(factor: float, exponent: float, size: int) -> int:
    return max(2, round(size * factor**exponent))


@dataclass(frozen=True)
class Generator:
    """A family of cases.

    Attributes
    ----------
    build : callable
        Takes as many integers as ``default`` has.
    default : tuple of int
        The sizes of the family's usual case.
    powers : tuple of float
        Each size goes with the number of entries to this power.
    """

    build: Callable[..., Csr]
    default: tuple[int, ...]
    powers: tuple[float, ...] = ()

    def scaled(self, sizes: tuple[int, ...], factor: float) -> tuple[int, ...]:
        """Return sizes with about ``factor`` times the entries; a power of 0 leaves a size."""
        if self.build in (generators.rmat, drawn.flat_rmat):  # the first is a logarithm
            return round(sizes[0] + np.log2(factor)), _power(factor, 1.0, sizes[1]), *sizes[2:]
        return tuple(
            _power(factor, power, size) if power else size
            for size, power in zip(sizes, self.powers, strict=True)
        )

    @property
    def summary(self) -> str:
        """Its description, in a sentence."""
        return (self.build.__doc__ or "").partition("\n")[0].removeprefix("Return ")


CASES = {
    "stencil5": Generator(generators.stencil5, (1000,), (1 / 2,)),
    "stencil7": Generator(generators.stencil7, (100,), (1 / 3,)),
    "stencil9": Generator(generators.stencil9, (1000,), (1 / 2,)),
    "stencil27": Generator(generators.stencil27, (80,), (1 / 3,)),
    "fem": Generator(generators.fem, (30,), (1 / 3,)),
    "circuit": Generator(generators.circuit, (500_000,), (1.0,)),
    "rmat": Generator(generators.rmat, (18, 4_000_000), (0.0, 1.0)),
    "blocks": Generator(generators.blocks, (200_000, 64, 4_000_000), (1.0, 0.0, 1.0)),
    "uniform": Generator(generators.uniform, (500_000, 500_000, 5_000_000), (1.0, 1.0, 1.0)),
    "pruned": Generator(generators.pruned, (2048, 2048, 90), (1 / 2, 1 / 2, 0.0)),
    "weights": Generator(generators.weights, (4096, 4096, 90), (1 / 2, 1 / 2, 0.0)),
    "hypersparse": Generator(generators.hypersparse, (4_000_000, 1_000_000), (1.0, 1.0)),
    "dense-blocks": Generator(drawn.dense_blocks, (64, 500, 1), (1.0, 0.0, 0.0)),
    "lognormal": Generator(drawn.lognormal, (200_000, 20, 1), (1.0, 0.0, 0.0)),
    "two-sorts": Generator(drawn.two_sorts, (300_000, 8, 1), (1.0, 0.0, 0.0)),
    "flat-rmat": Generator(drawn.flat_rmat, (18, 4_000_000, 1), (0.0, 1.0, 0.0)),
    "tetrahedra": Generator(drawn.tetrahedra, (100_000, 1), (1.0, 0.0)),
    "shuffled": Generator(drawn.shuffled, (100, 1), (1 / 3, 0.0)),
}

#: The prefixes of other names: stand-ins, and the SuiteSparse collection.
LIKE, COLLECTION = "like", "ss"


def case(name: str) -> Case:
    """Return the case called ``name``.

    Parameters
    ----------
    name : str
        A family (``stencil7``), a family and its sizes (``stencil7:100``), a stand-in and the
        divisor of its rows (``like:thermal2/4``), a name in the SuiteSparse collection
        (``ss:Schmid/thermal2``), or a matrix file.

    Raises
    ------
    InvalidArgument
        If it is none of them.

    Examples
    --------
    >>> from wollemi_bench import case
    >>> case("stencil5:10").matrix().shape
    (100, 100)
    """
    family, _, sizes = name.partition(":")
    if family == LIKE and sizes:
        return Case(name, standins.standin(sizes), f"{LIKE}:{sizes.partition('/')[0]}")
    if family == COLLECTION and sizes:
        return Case(name, partial(_read_of_collection, sizes))
    generator = CASES.get(family)
    if generator is None:
        if name.endswith(ENDINGS):
            return Case(_short(name), partial(read, Path(name)), path=Path(name))
        known = ", ".join((*CASES, f"{LIKE}:...", f"{COLLECTION}:..."))
        raise InvalidArgument(
            f"no case is called {name!r}; known: {known}, and matrix files and folders"
        )
    try:
        numbers = tuple(int(word) for word in sizes.split(",")) if sizes else generator.default
    except ValueError:
        numbers = ()
    if len(numbers) != len(generator.default) or min(numbers) < 1:
        example = ",".join(map(str, generator.default))
        raise InvalidArgument(f"case {name!r}: expected sizes as in {family}:{example}")
    return _generated(family, numbers)


def _generated(family: str, numbers: tuple[int, ...]) -> Case:
    name = f"{family}:{','.join(map(str, numbers))}"
    return Case(name, partial(CASES[family].build, *numbers), family)


def read(path: Path) -> Csr:
    """Return the matrix of a file."""
    return compressed(io.read(path, executor="reference").to_scipy())


def _read_of_collection(name: str) -> Csr:
    return read(suitesparse.file(name))


def _short(name: str) -> str:
    """Return the name of a file without its folder and ending."""
    stem = Path(name).name
    for ending in sorted(ENDINGS, key=len, reverse=True):
        stem = stem.removesuffix(ending)
    return stem


def cases(names: list[str]) -> list[Case]:
    """Return the cases of these names; a folder stands for the matrix files in it.

    Raises
    ------
    InvalidArgument
        If a name is no case, or there is no matrix file in a folder.
    """
    found = []
    for name in names:
        if not Path(name).is_dir():
            found.append(case(name))
            continue
        files = sorted(path for path in Path(name).iterdir() if path.name.endswith(ENDINGS))
        if not files:
            raise InvalidArgument(f"{name}: no matrix file there ({', '.join(ENDINGS)})")
        found += [case(str(path)) for path in files]
    return found


#: The sizes of a growth curve: multiples of the entries of the named case.
GROWTH = (1 / 64, 1 / 16, 1 / 4, 1.0)


def grown(name: str) -> list[Case]:
    """Return a case over sizes, the smallest first and that of ``name`` last.

    Raises
    ------
    InvalidArgument
        If it is a matrix of one size.
    """
    one = case(name)
    if not _has_sizes(one):
        raise InvalidArgument(f"{name}: only generated cases have other sizes")
    return [divided(one, factor) for factor in GROWTH]


def divided(one: Case, factor: float) -> Case:
    """Return a case with about ``factor`` times the entries, or itself if it has one size."""
    if one.small:
        return divided(case(one.small), factor)
    if not _has_sizes(one):
        return one
    if one.family.startswith(LIKE + ":"):
        what, _, divisor = one.name.partition("/")
        return case(f"{what}/{round(int(divisor or 1) / factor)}")
    numbers = tuple(int(word) for word in one.name.partition(":")[2].split(","))
    return _generated(one.family, CASES[one.family].scaled(numbers, factor))


def _has_sizes(one: Case) -> bool:
    return one.family in CASES or one.family.startswith(LIKE + ":")
