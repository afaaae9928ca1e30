"""Where the text of this backend's kernels is looked for."""

from pathlib import Path

from ..unified.wrappers import FOLDERS as SHARED

_HERE = Path(__file__).parent

FOLDERS = (*SHARED, _HERE / "loop", _HERE / "spmv", _HERE / "products", _HERE / "peers")
