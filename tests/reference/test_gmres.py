"""Triangles of sides 3, 4 and 5."""

import numpy as np
import pytest

from wollemi.core.operations import gmres
from wollemi.core.status import Stop

from .helpers import columns, unset

S = 3


def basis(*vectors):
    """Return a basis of one column with the given first vectors."""
    block = unset(S, len(vectors[0]), 1)
    for i, vector in enumerate(vectors):
        block[i, :, 0] = vector
    return block


def step(j):
    return np.array([j], np.int64)


def entries(*values):
    """Return ``values`` at the head of an ``(s, 1)`` array."""
    array = unset(S, 1)
    array[: len(values), 0] = values
    return array


def test_start(run, make_status):
    status = make_status(0.0)
    status.norm[:] = 5
    v, vectors, g = unset(2, 1), unset(S, 2, 1), unset(S, 1)
    count, at = unset(1, dtype=np.int64), unset(1, dtype=np.int64)
    run(gmres.start, columns([3, 4]), v, vectors, g, count, at, status)
    np.testing.assert_allclose(v, columns([0.6, 0.8]))
    np.testing.assert_array_equal(vectors[0], v)
    assert g.tolist() == [[5], [0], [0]]
    assert (count.item(), at.item()) == (0, 0)


def test_start_writes_zeros_where_a_column_has_stopped(run, make_status):
    status = make_status(0.0, stop=[Stop.CONVERGED])
    v, vectors, count = unset(2, 1), unset(S, 2, 1), unset(1, dtype=np.int64)
    run(gmres.start, columns([3, 4]), v, vectors, unset(S, 1), count, step(9), status)
    assert not v.any()
    assert not vectors[0].any()
    assert count.item() == 0


def test_project(run, make_status):
    h, before = unset(S, 1), unset(1)
    vectors = basis([0.6, 0.8], [-0.8, 0.6])
    run(gmres.project, vectors, columns([1, 2]), h, before, step(1), make_status(0.0))
    np.testing.assert_allclose(h[:2, 0], [2.2, 0.4])
    np.testing.assert_allclose(before, np.sqrt(5))


def test_project_uses_the_vectors_up_to_the_step(run, make_status):
    h = unset(S, 1)
    run(gmres.project, basis([1, 0]), columns([7, 2]), h, unset(1), step(0), make_status(0.0))
    assert h[0, 0] == 7
    assert np.isnan(h[1:]).all()


def test_subtract(run, make_status):
    w, after = columns([1, 2]), unset(1)
    run(gmres.subtract, basis([0.6, 0.8]), w, entries(2.2), after, step(0), make_status(0.0))
    np.testing.assert_allclose(w, columns([-0.32, 0.24]))
    np.testing.assert_allclose(after, [0.4])


def second_time(run, status, w, h, after):
    """Project and subtract once more; return the corrections."""
    correction, before = unset(S, 1), np.array([1.0])
    run(gmres.reproject, basis([1, 0]), w, correction, before, after, step(0), status)
    run(gmres.resubtract, basis([1, 0]), w, h, correction, before, after, step(0), status)
    return correction


def test_what_lost_digits_is_projected_a_second_time(run, make_status):
    w, h, after = columns([1, 2]), entries(5), np.array([0.05])
    correction = second_time(run, make_status(0.0), w, h, after)
    assert correction[0, 0] == 1
    assert w.tolist() == [[0], [2]]
    assert h[0, 0] == 6
    assert after.tolist() == [2]


def test_what_lost_none_is_left_alone(run, make_status):
    w, h, after = columns([1, 2]), entries(5), np.array([0.2])
    correction = second_time(run, make_status(0.0), w, h, after)
    assert np.isnan(correction).all()
    assert w.tolist() == [[1], [2]]
    assert h[0, 0] == 5
    assert after.tolist() == [0.2]


class Rotation:
    """The state that rotations go through, for one column."""

    def __init__(self) -> None:
        self.hessenberg = unset(S, S, 1)
        self.cosine, self.sine = unset(S, 1), unset(S, 1)
        self.g, self.count = np.array([[10.0], [0.0], [0.0]]), step(0)

    def rotate(self, run, status, j, h, after, before=100.0):
        self.after = np.array([after])
        run(
            gmres.rotate,
            entries(*h),
            self.after,
            np.array([before]),
            self.hessenberg,
            self.cosine,
            self.sine,
            self.g,
            self.count,
            step(j),
            status,
        )


def test_the_first_rotation(run, make_status):
    status, state = make_status(0.0), Rotation()
    state.rotate(run, status, 0, h=[3.0], after=4.0)
    np.testing.assert_allclose((state.cosine[0, 0], state.sine[0, 0]), (0.6, 0.8))
    np.testing.assert_allclose(state.hessenberg[0, 0, 0], 5)
    np.testing.assert_allclose(state.g, [[6], [-8], [0]])
    assert state.count.item() == 1
    np.testing.assert_allclose(status.norm, [8])
    assert status.iterations.tolist() == [1]


def test_a_later_rotation_comes_after_the_earlier_ones(run, make_status):
    """(5, 0) becomes (3, -4), and (-4, 3) becomes (-5, 0)."""
    status, state = make_status(0.0), Rotation()
    state.rotate(run, status, 0, h=[3.0], after=4.0)
    state.rotate(run, status, 1, h=[5.0, 0.0], after=3.0)
    np.testing.assert_allclose(state.hessenberg[:2, 1, 0], [3, -5])
    np.testing.assert_allclose((state.cosine[1, 0], state.sine[1, 0]), (0.8, -0.6))
    np.testing.assert_allclose(state.g, [[6], [-6.4], [-4.8]])
    np.testing.assert_allclose(status.norm, [4.8])
    assert state.count.item() == 2


def test_the_space_is_exhausted_at_rounding_error(run, make_status):
    status, state = make_status(0.0), Rotation()
    state.rotate(run, status, 0, h=[3.0], after=1e-14, before=100.0)
    assert state.after.tolist() == [0]
    assert (state.cosine[0, 0], state.sine[0, 0]) == (1, 0)
    assert state.g.tolist() == [[10], [0], [0]]
    assert status.stop.tolist() == [Stop.CONVERGED]


def test_a_zero_on_the_diagonal_swaps(run, make_status):
    status, state = make_status(0.0), Rotation()
    state.rotate(run, status, 0, h=[0.0], after=2.0)
    assert (state.cosine[0, 0], state.sine[0, 0]) == (0, 1)
    assert state.hessenberg[0, 0, 0] == 2
    assert state.g.tolist() == [[0], [-10], [0]]


def test_a_complex_rotation_keeps_the_length(run, make_status):
    """(3i, 4): cosine 0.6, sine 0.8i, and 0.6 * 3i + 0.8i * 4 = 5i."""
    status = make_status(0.0)
    h, g = np.zeros((2, 1), complex), np.zeros((2, 1), complex)
    h[0], g[0] = 3j, 10
    hessenberg, sine = np.zeros((2, 2, 1), complex), np.zeros((2, 1), complex)
    cosine, after, before = np.zeros((2, 1)), np.array([4.0]), np.array([5.0])
    run(gmres.rotate, h, after, before, hessenberg, cosine, sine, g, step(0), step(0), status)
    np.testing.assert_allclose(cosine[0], 0.6)
    np.testing.assert_allclose(sine[0], 0.8j)
    np.testing.assert_allclose(hessenberg[0, 0], 5j)
    np.testing.assert_allclose(g[:, 0], [6, 8j])


def test_append(run, make_status):
    v, vectors, at = unset(2, 1), basis([1, 0]), step(0)
    run(gmres.append, columns([3, 4]), np.array([5.0]), v, vectors, at, make_status(0.0))
    np.testing.assert_allclose(v, columns([0.6, 0.8]))
    np.testing.assert_array_equal(vectors[1], v)
    assert at.item() == 1


def test_append_of_an_exhausted_space_is_zero(run, make_status):
    v, vectors = unset(2, 1), basis([1, 0])
    run(gmres.append, columns([0, 0]), np.array([0.0]), v, vectors, step(0), make_status(0.0))
    assert not v.any()
    assert not vectors[1].any()


def test_the_step_goes_on_though_all_columns_have_stopped(run, make_status):
    v, vectors, at = columns([7, 7]), basis([1, 0]), step(0)
    status = make_status(0.0, stop=[Stop.CONVERGED])
    run(gmres.append, columns([3, 4]), np.array([5.0]), v, vectors, at, status)
    assert at.item() == 1
    assert v.tolist() == [[7], [7]]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, [0, 0, 0]), (1, [2, 0, 0]), (2, [1, 2, 0])], ids=str
)
def test_solve(run, count, expected):
    """2 y0 + y1 = 4, 4 y1 = 8."""
    hessenberg, y = unset(S, S, 1), unset(S, 1)
    hessenberg[:2, :2, 0] = [[2, 1], [np.nan, 4]]
    run(gmres.solve, hessenberg, entries(4, 8, 0.5), step(count), y)
    assert y[:, 0].tolist() == expected


def test_solve_passes_over_a_zero_pivot(run):
    hessenberg, y = unset(S, S, 1), unset(S, 1)
    hessenberg[:2, :2, 0] = [[2, 1], [np.nan, 0]]
    run(gmres.solve, hessenberg, entries(4, 8, 0.5), step(2), y)
    assert y[:, 0].tolist() == [2, 0, 0]


@pytest.mark.parametrize(("count", "expected"), [(0, [0, 0]), (1, [2, 0]), (2, [2, 3])], ids=str)
def test_combine_reads_no_more_than_count(run, count, expected):
    u = unset(2, 1)
    vectors = basis([1, 0], [0, 1])
    vectors[count:] = np.nan
    run(gmres.combine, vectors, entries(2, 3), step(count), u)
    assert u[:, 0].tolist() == expected
