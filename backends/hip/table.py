"""The table of this backend: everything that is shared, and nothing of its own yet."""

from ...core.operation import KernelTable
from ..gpu.table import kernel as shared

kernel = KernelTable("hip", parent=shared)
