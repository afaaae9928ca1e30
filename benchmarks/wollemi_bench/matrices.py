"""Matrices that suites know by name, as far as a folder has them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from wollemi.core.errors import InvalidArgument

from . import generators
from .cases import ENDINGS, Case, case, cases, read
from .generators import Csr

#: Where tests and benchmarks find real matrices, if no folder is named.
FOLDER = "WOLLEMI_MATRICES"

#: Prefixes of names: a graph with a uniform matrix of its size, layers of DLMC, and all files.
GRAPH, LAYERS, FILES = "graph:", "layers:", "files:"

#: File names of matrices of the collection DLMC, and of a selection from it.
DLMC_ENDINGS, PICKED = (".smtx", ".smtx.gz"), "dlmc_"


class NotHere(InvalidArgument):
    """A matrix that the folder does not have: its contests are skipped."""


@dataclass(frozen=True)
class Matrices:
    """A folder of matrices.

    Attributes
    ----------
    folder : Path or None
        Where they are.
    every_file : bool
        Whether layers are all files of DLMC below the folder, or the files in it with names that
        begin with ``dlmc_``.
    """

    folder: Path | None = None
    every_file: bool = False

    @classmethod
    def usual(cls) -> Matrices:
        """Return the matrices of the folder that the environment names."""
        named = os.environ.get(FOLDER)
        return cls(Path(named) if named else None)

    def cases(self, names: Iterable[str]) -> list[Case]:
        """Return the cases of names, also of names of files of the folder.

        Raises
        ------
        InvalidArgument
            If a name is no case. A graph that is not here is one, which cannot be read.
        """
        found: list[Case] = []
        for name in names:
            if name.startswith(GRAPH):
                found += self.graph(name.removeprefix(GRAPH))
            elif name == LAYERS:
                found += self.layers()
            elif name == FILES:
                found += self.files()
            else:
                found += cases([name])
        return found

    def graph(self, name: str) -> list[Case]:
        """Return a graph and a matrix of its rows, columns and entries, which are anywhere.

        Both are read or made when they are asked for. Of a graph that is not here there is one
        case, which says so.
        """
        path = self.find(name)
        if path is None:
            return [Case(name, partial(_not_here, f"{name}: {self._missing(name)}"))]
        return [
            Case(name, partial(read, path), path=path, small="rmat:16,1000000"),
            Case(
                f"uniform as {name}",
                partial(_uniform_as, path),
                path=path,
                small="uniform:65536,65536,1000000",
            ),
        ]

    def find(self, name: str) -> Path | None:
        """Return the file of a matrix: in the folder, or in one of its name there, or None.

        The archives of the SuiteSparse collection have folders of such names.
        """
        if self.folder is None:
            return None
        places = (self.folder, self.folder / name)
        files = (place / f"{name}{ending}" for place in places for ending in ENDINGS)
        return next((path for path in files if path.is_file()), None)

    def layers(self) -> list[Case]:
        """Return the files of DLMC; one below the folder is called by its path from there."""
        if self.folder is None:
            return []
        if not self.every_file:
            files = sorted(self.folder.glob(f"{PICKED}*"))
            return [case(str(path)) for path in files if path.name.endswith(DLMC_ENDINGS)]
        return [
            Case(_name_below(self.folder, path), partial(read, path), path=path)
            for path in sorted(self.folder.rglob("*"))
            if path.name.endswith(DLMC_ENDINGS) and path.is_file()
        ]

    def files(self) -> list[Case]:
        """Return all matrix files of the folder."""
        if self.folder is None:
            return []
        files = (path for path in sorted(self.folder.iterdir()) if path.name.endswith(ENDINGS))
        return [case(str(path)) for path in files]

    def _missing(self, name: str) -> str:
        if self.folder is None:
            return f"no folder has it: --matrices FOLDER, or {FOLDER}"
        return f"{self.folder} has no {name}{ENDINGS[0]} (nor {', '.join(ENDINGS[1:])})"


def _name_below(folder: Path, path: Path) -> str:
    name = path.relative_to(folder).as_posix()
    return name[: name.rindex(".smtx")]


def _not_here(why: str) -> NoReturn:
    raise NotHere(why)


def _uniform_as(path: Path) -> Csr:
    """Return entries anywhere, about as many as a file has, in a matrix of its size."""
    S = read(path)
    return generators.uniform(*S.shape, S.nnz)
