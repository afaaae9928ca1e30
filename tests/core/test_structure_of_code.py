"""Sizes of files, functions and classes, private names across classes, imports without circles.

And headers of C++ that native modules of a process with other C++ runtimes do without.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .sources import ROOT, parsed

FOLDERS = (
    "core",
    "solvers",
    "backends",
    "src/wollemi/cli",
    "src/wollemi/interop",
    "src/wollemi/learning",
    "src/wollemi/precompile",
    "benchmarks/wollemi_bench",
    "tests",
    "examples",
    "packaging",
)
#: A lower limit on files splits one idea over several of them.
LINES_OF_FILE, LINES_OF_FUNCTION, PATHS = 800, 80, 20

#: Longer files and functions with more paths, and the reasons.
EXCEPTIONS = {
    "backends/omp/generate.py entry": "the text of an entry, a condition for each kind of argument",
    "solvers/auto/choose.py solve": "a docstring of 90 lines: every option of the usual entry",
    "backends/cuda/loop/loop.py fits_one_kernel": "a list of conditions, each a line of its own",
    "benchmarks/wollemi_bench/page/chapters.py _where": "words for each of many kinds of machine",
    "benchmarks/wollemi_bench/page/series.py _table": "a table of conditional columns",
    "core/own_operations.py declare": "a docstring of 60 lines: every option of a declaration",
    "src/wollemi/interop/jax/functions.py fusedmm": "a docstring of 40 lines",
    "src/wollemi/interop/jax/primitives.py define": "the rules of a primitive, in one closure",
    "src/wollemi/interop/jax/products.py _fusedmm_jvp": "a term for each operand and edge function",
    "benchmarks/wollemi_bench/timing.py interleave": "one loop with a docstring of 30 lines",
}

#: Names of several classes: one algorithm on several backends, one concept in two libraries, and
#: public names that their modules tell apart.
SHARED_NAMES = {
    "EntriesReduced", "OneColumn", "RowPatterns", "RowSplit", "RowsReduced", "Sell", "SubWarp",
    "Entries", "Pattern", "Sparse", "SparseProduct",
    "Chebyshev", "Csr", "Multigrid", "Preconditioner", "Solver",
}  # fmt: skip

#: Public methods that a class defines, and private attributes of other classes that a module reads.
PUBLIC_METHODS, PRIVATE_ATTRIBUTES = 25, 6

#: Classes with more public methods, and modules that read more attributes: these may become fewer.
LARGER = {
    "core/executor.py Executor": 56,
    "backends/gpu/base.py GpuExecutor": 50,
    "backends/cuda/runtime/executor.py CudaExecutor": 26,
    "core/formats/sparse_vector.py SparseVector": 30,
    "core/distributed/matrix.py Csr": 29,
    "core/formats/base.py Matrix": 28,
    "core/formats/stored.py": 7,
    "solvers/batch/member.py": 10,
    "src/wollemi/interop/torch/known_products.py": 8,  # names of PyTorch's own modules
    "src/wollemi/interop/torch/patterns.py": 8,
}

_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.match_case)
_WORDS = re.compile(r"\b(?:if|elif|for|while|except|case|and|or)\b")


def files(*suffixes: str) -> list[Path]:
    """Return the files of the package, the benchmarks and the tests, from the root."""
    found = [f for folder in FOLDERS for s in suffixes for f in (ROOT / folder).rglob(f"*{s}")]
    return sorted(f.relative_to(ROOT) for f in found)


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions within a tree; no expression has one."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.expr):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield child
            yield from functions_of(child)


def paths_of(function: ast.AST) -> int:
    """Return the cyclomatic complexity: one, and one for every branch."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            count += 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def test_a_file_is_one_idea() -> None:
    lines = {str(f): len((ROOT / f).read_text().splitlines()) for f in files(".py", ".hpp", ".cpp")}
    long = {file: count for file, count in lines.items() if count > LINES_OF_FILE}
    assert long.keys() <= EXCEPTIONS.keys(), long


def test_native_modules_use_no_streams() -> None:
    # PyTorch and CuPy may bring C++ runtimes of their own: a stream then ended the process.
    streams = re.compile(r"#include <(\w*stream|iomanip|locale|regex)>")
    native = [f for f in files(".hpp", ".cpp") if f.parts[0] == "backends"]
    assert [f for f in native if streams.search((ROOT / f).read_text())] == []


def test_functions_fit_a_screen() -> None:
    large = []
    for file in files(".py"):
        text = (ROOT / file).read_text(encoding="utf-8").splitlines()
        for node in functions_of(parsed(file)):
            lines = text[node.lineno - 1 : node.end_lineno]
            # each branch has a word, and few functions so many that their branches must be counted
            few = len(_WORDS.findall("\n".join(lines))) < PATHS
            paths = 1 if few else paths_of(node)
            name = f"{file} {node.name}"
            if (len(lines) > LINES_OF_FUNCTION or paths > PATHS) and name not in EXCEPTIONS:
                large.append(f"{name} has {len(lines)} lines and {paths} paths")
    assert not large


def package_files() -> list[Path]:
    """Return the Python files of the package."""
    return [f for f in files(".py") if f.parts[0] in ("core", "solvers", "backends", "src")]


def private_attributes(file: Path) -> set[str]:
    """Return the private attributes that a module reads and none of its classes defines."""
    read, defined = set(), set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if own and isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
            of_base = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            if not own and not of_base:
                read.add(node.attr)
    return {n for n in read - defined if n.startswith("_") and not n.startswith("__")}


def test_classes_have_few_public_methods() -> None:
    large = []
    for file in package_files():
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ClassDef):
                methods = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
                public = [name for name in methods if not name.startswith("_")]
                name = f"{file} {node.name}"
                if len(public) > LARGER.get(name, PUBLIC_METHODS):
                    large.append(f"{name} has {len(public)} public methods")
    assert not large


def test_modules_read_few_private_attributes_of_other_classes() -> None:
    read = {str(file): sorted(private_attributes(file)) for file in package_files()}
    many = {f: names for f, names in read.items() if len(names) > LARGER.get(f, PRIVATE_ATTRIBUTES)}
    assert not many


def test_a_name_is_of_one_class() -> None:
    found: dict[str, set[str]] = {}
    for file in package_files():
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(str(file))
    several = {name: sorted(where) for name, where in found.items() if len(where) > 1}
    unknown = {name: where for name, where in several.items() if name not in SHARED_NAMES}
    assert not unknown, f"give each class a name of its own: {unknown}"
    assert several.keys() >= SHARED_NAMES, SHARED_NAMES - several.keys()


def test_the_exceptions_are_still_exceptions() -> None:
    for name in EXCEPTIONS:
        file, _, function = name.partition(" ")
        if function:
            names = {getattr(node, "name", None) for node in ast.walk(parsed(Path(file)))}
            assert function in names
        else:
            assert len((ROOT / file).read_text().splitlines()) > LINES_OF_FILE


def module(file: Path) -> tuple[str, ...]:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported_when_loaded(file: Path, known: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return the modules of ours that a module imports when it is imported itself."""
    name = module(file)
    package = name if file.name == "__init__.py" else name[:-1]
    found: set[tuple[str, ...]] = set()
    waiting: list[ast.stmt] = list(parsed(file).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            waiting += node.body + node.orelse
        elif isinstance(node, ast.Try):
            waiting += node.body
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            base += tuple(node.module.split(".")) if node.module else ()
            found |= {(*base, a.name) if (*base, a.name) in known else base for a in node.names}
    return (found & known) - {name}


def test_imports_have_no_circles() -> None:
    known = {module(f): f for f in files(".py")}
    needs = {name: imported_when_loaded(file, set(known)) for name, file in known.items()}
    # Modules that need nothing are removed repeatedly, until none or a cycle is left.
    while free := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in free:
            del needs[name]
    assert not needs, sorted(".".join(name) for name in needs)


def test_destructors_ask_whether_python_ends() -> None:
    """Modules may be empty when the last objects are freed: ``__del__`` then prints errors."""
    for file in package_files():
        if "def __del__" not in (ROOT / file).read_text("utf-8"):
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.FunctionDef) and node.name == "__del__":
                defaults = [ast.unparse(default) for default in node.args.defaults]
                assert defaults == ["is_finalizing"], f"{file}: __del__(self, ... = is_finalizing)"
