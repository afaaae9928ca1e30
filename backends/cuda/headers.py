"""Where the text of this backend's kernels is looked for."""

from pathlib import Path

from ..unified.wrappers import FOLDERS as SHARED

_HERE = Path(__file__).parent

#: The folders of this backend with headers.
_OWN = ("loop", "spmv", "products", "peers", "batch")

FOLDERS = (*SHARED, *(_HERE / folder for folder in _OWN))
