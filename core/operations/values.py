"""Element-wise functions of values, and reductions over all values."""

from ..operation import declare

ROWS = ("n", "k")

magnitude = declare("values.magnitude", "x: in T[n,k], y: out R[n,k]", "y = |x|", over=ROWS)

real = declare("values.real", "x: in T[n,k], y: out R[n,k]", "y = the real part of x", over=ROWS)

imaginary = declare(
    "values.imaginary", "x: in T[n,k], y: out R[n,k]", "y = the imaginary part of x", over=ROWS
)

power = declare(
    "values.power", "x: in T[n,k], y: out T[n,k], exponent: T", "y = x to the exponent", over=ROWS
)

total = declare(
    "values.total",
    "x: in T[n,k], value: out T[k]",
    "value_c = the sum of all x_ic",
    over=ROWS,
    sums=("T",),
)

largest = declare(
    "values.largest",
    "x: in T[n,k], value: out T[k]",
    "value_c = the largest x_ic, 0 if there is none, NaN if any is; complex ones by real part, "
    "then imaginary part",
    over=ROWS,
    sums=("extreme",),
)

smallest = declare(
    "values.smallest",
    "x: in T[n,k], value: out T[k]",
    "value_c = the smallest x_ic, 0 if there is none, NaN if any is; complex ones by real part, "
    "then imaginary part",
    over=ROWS,
    sums=("extreme",),
)
