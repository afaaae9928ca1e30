"""A matrix by bands: entry ``(i, i + offsets[j])`` is ``data[j, i]``."""

import wollemi as wl
from wollemi.extend import register_format

from .product import bands_product


class Bands(wl.Matrix):
    """A matrix by bands."""

    format = "bands"
    arrays = ("data", "offsets")

    def other_state(self):
        """Return the attributes that are no arrays."""
        return {"_nnz": self._nnz}

    @property
    def nnz(self):
        """How many entries are not zero."""
        return self._nnz

    @property
    def index_dtype(self):
        """The dtype of the offsets."""
        return self.offsets.dtype

    def apply_block(self, x, y, alpha, beta):
        """Set y = alpha A x + beta y."""
        sizes = int(self.offsets.size), self.shape[1]
        self.executor.run(bands_product, self.data, self.offsets, x, y, alpha, beta, *sizes)

    @property
    def T(self):
        """The transpose."""
        return self.asformat("csr").T.asformat("bands")

    @property
    def H(self):
        """The conjugate transpose."""
        return self.T.conj()


def bands_to_csr(A):
    """Return the entries that are not zero by rows."""
    xp = A.executor.xp
    j, row = xp.nonzero(A.data)
    order = xp.argsort(row, kind="stable")
    j, row = j[order], row[order]
    coordinates = (A.data[j, row], (row, row + A.offsets[j]))
    return wl.Coo(coordinates, shape=A.shape, executor=A.executor).tocsr()


def bands_from_csr(A):
    """Return a matrix by the bands that have entries."""
    A = A.without_duplicates()
    xp, m = A.executor.xp, A.shape[0]
    row = xp.repeat(xp.arange(m), A.indptr[1:] - A.indptr[:-1])
    offsets, which = xp.unique((A.indices - row).astype("int64"), return_inverse=True)
    data = xp.zeros((offsets.size, m), A.dtype)
    data[which.reshape(-1), row] = A.data
    nnz = int(xp.count_nonzero(data))
    return Bands.from_arrays(A.executor, A.shape, data, offsets, _nnz=nnz)


register_format(Bands, bands_to_csr, bands_from_csr)
