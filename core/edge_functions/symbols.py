"""Symbols: the scores, indices and inputs of an edge function during tracing.

Symbols support arithmetic, comparisons, and functions of NumPy and PyTorch, which dispatch to the
symbols. Each call adds instructions to a :class:`~.program.Program`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .program import FUNCTIONS, INDEX

if TYPE_CHECKING:
    from .trace import EdgeTracing


class Untraceable(Exception):
    """Raised during tracing if no kernel can run a function; the message is the reason."""


class EdgeSymbol:
    """A per-entry value of an edge function.

    Parameters
    ----------
    tracing : EdgeTracing
        The trace to which it belongs.
    at : int
        Position of its instruction.
    """

    __slots__ = ("at", "tracing")
    __array_priority__ = 1000

    def __init__(self, tracing: EdgeTracing, at: int) -> None:
        self.tracing, self.at = tracing, at

    __hash__ = object.__hash__

    @property
    def type(self) -> str:
        """``value``, ``index`` or ``condition``."""
        return self.tracing.builder.type_of(self.at)

    # ---- facts about the array that it stands for

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores."""
        return self.tracing.shape

    @property
    def ndim(self) -> int:
        """The number of axes of the scores."""
        return len(self.tracing.shape)

    def dim(self) -> int:
        """Return the number of axes of the scores."""
        return self.ndim

    if TYPE_CHECKING:  # made from CALLS below

        def __add__(self, other: Any) -> EdgeSymbol: ...
        def __mul__(self, other: Any) -> EdgeSymbol: ...
        def __truediv__(self, other: Any) -> EdgeSymbol: ...

    def __bool__(self) -> bool:
        raise Untraceable("it branches on a value; choose with where(condition, a, b)")

    def __getattr__(self, name: str) -> Any:
        function = CALLS.get(name)
        if function is None or name.startswith("__"):
            raise Untraceable(f"it uses .{name} of scores")
        return lambda *operands, **named: function(self.tracing, self, *operands, **named)

    def __getitem__(self, key: Any) -> NoReturn:
        raise Untraceable("it takes parts of the scores by an index")

    def __iter__(self) -> NoReturn:
        raise Untraceable("it iterates over the scores")

    def __array__(self, *operands: Any, **named: Any) -> NoReturn:
        raise Untraceable("it turns scores into an array")

    # ---- functions of other libraries

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **named: Any) -> EdgeSymbol:
        if method != "__call__" or named.get("out") is not None:
            raise Untraceable(f"it uses {ufunc.__name__}.{method} of NumPy, or out=")
        return self._called(ufunc.__name__, operands, named)

    def __array_function__(
        self, function: Any, types: Any, operands: Any, named: Any
    ) -> EdgeSymbol:
        return self._called(function.__name__, operands, named)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, operands: Any = (), named: Mapping[str, Any] | None = None
    ) -> EdgeSymbol:
        named = dict(named or {})
        symbols = [x for x in (*operands, *named.values()) if isinstance(x, EdgeSymbol)]
        name = getattr(function, "__name__", str(function))
        if not symbols:
            raise Untraceable(f"it uses {name} of PyTorch on a list of scores")
        return symbols[0]._called(name, operands, named)

    def _called(self, name: str, operands: Any, named: Mapping[str, Any]) -> EdgeSymbol:
        function = CALLS.get(name.strip("_"))
        if function is None:
            raise Untraceable(f"it uses {name} of scores")
        try:
            return function(self.tracing, *operands, **named)
        except TypeError as error:
            raise Untraceable(f"it uses {name} with arguments that kernels lack: {error}") from None


#: Implementations ``f(tracing, *operands)`` by the names of functions and methods in the libraries.
CALLS: dict[str, Callable[..., EdgeSymbol]] = {}


def _named(*names: str) -> Callable[[Callable[..., EdgeSymbol]], Callable[..., EdgeSymbol]]:
    def register(function: Callable[..., EdgeSymbol]) -> Callable[..., EdgeSymbol]:
        CALLS.update(dict.fromkeys(names, function))
        return function

    return register


def _arithmetic(kind: str, turned: bool) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any, b: Any) -> EdgeSymbol:
        left, right = (b, a) if turned else (a, b)
        made = tracing.builder.arithmetic(kind, tracing.at(left), tracing.at(right))
        return EdgeSymbol(tracing, made)

    return call


def _compared(kind: str) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any, b: Any) -> EdgeSymbol:
        return EdgeSymbol(tracing, tracing.builder.compare(kind, tracing.at(a), tracing.at(b)))

    return call


def _combined(kind: str) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any, b: Any) -> EdgeSymbol:
        made = tracing.builder.logic(kind, tracing.condition(a), tracing.condition(b))
        return EdgeSymbol(tracing, made)

    return call


def _function(kind: str) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
        return EdgeSymbol(tracing, tracing.builder.function(kind, tracing.at(a)))

    return call


_ARITHMETIC = {
    "add": ("add",),
    "sub": ("sub", "subtract"),
    "mul": ("mul", "multiply"),
    "div": ("div", "truediv", "divide", "true_divide"),
}
for _kind, _names in _ARITHMETIC.items():
    _named(*_names)(_arithmetic(_kind, turned=False))
    _named(*(f"r{name}" for name in _names))(_arithmetic(_kind, turned=True))
_COMPARISONS = {
    "lt": ("lt", "less"),
    "le": ("le", "less_equal"),
    "gt": ("gt", "greater"),
    "ge": ("ge", "greater_equal"),
    "eq": ("eq", "equal"),
    "ne": ("ne", "not_equal"),
}
for _kind, _names in _COMPARISONS.items():
    _named(*_names)(_compared(_kind))
_named("and", "rand", "logical_and", "bitwise_and")(_combined("and"))
_named("or", "ror", "logical_or", "bitwise_or")(_combined("or"))
for _kind in FUNCTIONS:
    _named(_kind)(_function(_kind))
_named("absolute")(CALLS["abs"])


@_named("neg", "negative")
def _negative(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.builder.negative(tracing.at(a)))


@_named("invert", "logical_not", "bitwise_not")
def _inverse(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.builder.inverse(tracing.condition(a)))


@_named("where")
def _where(tracing: EdgeTracing, first: Any, a: Any, b: Any) -> EdgeSymbol:
    condition, x, y = tracing.condition(first), tracing.at(a), tracing.at(b)
    return EdgeSymbol(tracing, tracing.builder.where(condition, x, y))


@_named("masked_fill")
def _filled(tracing: EdgeTracing, a: Any, mask: Any, value: Any) -> EdgeSymbol:
    return _where(tracing, mask, value, a)


def _extreme(kind: str) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any, b: Any) -> EdgeSymbol:
        return EdgeSymbol(tracing, tracing.builder.extreme(kind, tracing.at(a), tracing.at(b)))

    return call


_named("minimum")(_extreme("minimum"))
_named("maximum")(_extreme("maximum"))


@_named("clamp", "clip")
def _clamped(tracing: EdgeTracing, a: Any, min: Any = None, max: Any = None) -> EdgeSymbol:
    made, at = tracing.builder, tracing.at(a)
    if max is not None:
        most = tracing.at(max)
        at = made.where(made.compare("gt", at, most), most, at)
    if min is not None:
        least = tracing.at(min)
        at = made.where(made.compare("lt", at, least), least, at)
    return EdgeSymbol(tracing, at)


def _leaky(tracing: EdgeTracing, a: Any, slope: float) -> EdgeSymbol:
    made, at, zero = tracing.builder, tracing.at(a), tracing.at(0.0)
    scaled = made.arithmetic("mul", tracing.at(slope), at)
    return EdgeSymbol(tracing, made.where(made.compare("gt", at, zero), at, scaled))


@_named("leaky_relu")
def _leaky_relu(
    tracing: EdgeTracing, input: Any, negative_slope: float = 0.01, inplace: bool = False
) -> EdgeSymbol:
    return _leaky(tracing, input, negative_slope)


@_named("relu")
def _relu(tracing: EdgeTracing, input: Any, inplace: bool = False) -> EdgeSymbol:
    made, at, zero = tracing.builder, tracing.at(input), tracing.at(0.0)
    return EdgeSymbol(tracing, made.where(made.compare("le", at, zero), zero, at))


@_named("sigmoid")
def _sigmoid(tracing: EdgeTracing, input: Any) -> EdgeSymbol:
    # exponentials only of nonpositive numbers, which cannot overflow
    made, at, one = tracing.builder, tracing.builder.value(tracing.at(input)), tracing.at(1.0)
    below = made.compare("lt", at, tracing.at(0.0))
    small = made.function("exp", made.where(below, at, made.negative(at)))
    top = made.where(below, small, one)
    return EdgeSymbol(tracing, made.arithmetic("div", top, made.arithmetic("add", one, small)))


@_named("softplus")
def _softplus(
    tracing: EdgeTracing, input: Any, beta: float = 1, threshold: float = 20
) -> EdgeSymbol:
    # log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
    made = tracing.builder
    scaled = made.arithmetic("mul", made.value(tracing.at(input)), tracing.at(float(beta)))
    below, zero = made.compare("lt", scaled, tracing.at(0.0)), tracing.at(0.0)
    small = made.function("exp", made.where(below, scaled, made.negative(scaled)))
    soft = made.arithmetic("add", made.where(below, zero, scaled), made.function("log1p", small))
    linear = made.compare("gt", scaled, tracing.at(float(threshold)))
    found = made.where(linear, scaled, soft)
    return EdgeSymbol(tracing, made.arithmetic("div", found, tracing.at(float(beta))))


@_named("square")
def _square(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
    at = tracing.at(a)
    return EdgeSymbol(tracing, tracing.builder.arithmetic("mul", at, at))


@_named("pow", "power")
def _power(tracing: EdgeTracing, a: Any, exponent: Any) -> EdgeSymbol:
    if not isinstance(exponent, (int, float)) or exponent not in (1, 2, 3, 4, 0.5, -1):
        raise Untraceable(f"it takes the power {exponent!r}; kernels have 1, 2, 3, 4, 0.5 and -1")
    made, at = tracing.builder, tracing.at(a)
    if exponent == 0.5:
        return EdgeSymbol(tracing, made.function("sqrt", at))
    if exponent == -1:
        return EdgeSymbol(tracing, made.arithmetic("div", tracing.at(1.0), at))
    found = at
    for _ in range(int(exponent) - 1):
        found = made.arithmetic("mul", found, at)
    return EdgeSymbol(tracing, found)


@_named("reciprocal")
def _reciprocal(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.builder.arithmetic("div", tracing.at(1.0), tracing.at(a)))


def _divided(kind: str) -> Callable[..., EdgeSymbol]:
    def call(tracing: EdgeTracing, a: Any, by: Any) -> EdgeSymbol:
        at = tracing.at(a)
        is_whole = isinstance(by, int) and not isinstance(by, bool) and 0 < by < 2**31
        if not is_whole or tracing.builder.type_of(at) != INDEX:
            raise Untraceable("it divides with a remainder other than an index by a number above 0")
        return EdgeSymbol(tracing, tracing.builder.divided(kind, at, by))

    return call


_named("floordiv", "floor_divide")(_divided("floordiv"))
_named("mod", "remainder")(_divided("mod"))


@_named("float", "double", "to", "type_as", "half", "bfloat16")
def _as_value(tracing: EdgeTracing, a: Any, *others: Any, **named: Any) -> EdgeSymbol:
    if any(name in str(other) for other in (*others, *named.values()) for name in ("int", "bool")):
        raise Untraceable("it converts scores to integers")
    return EdgeSymbol(tracing, tracing.builder.value(tracing.at(a)))


@_named("long", "int")
def _as_index(tracing: EdgeTracing, a: Any) -> EdgeSymbol:
    if not isinstance(a, EdgeSymbol) or a.type != INDEX:
        raise Untraceable("it converts scores to integers")
    return a


@_named("contiguous", "clone")
def _same(tracing: EdgeTracing, a: Any, **named: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.at(a))


@_named("zeros_like")
def _zeros(tracing: EdgeTracing, a: Any, **named: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.at(0.0))


@_named("ones_like")
def _ones(tracing: EdgeTracing, a: Any, **named: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.at(1.0))


@_named("full_like")
def _full(tracing: EdgeTracing, a: Any, fill_value: float, **named: Any) -> EdgeSymbol:
    return EdgeSymbol(tracing, tracing.at(fill_value))


def _method(name: str) -> Callable[..., EdgeSymbol]:
    function = CALLS[name]

    def method(self: EdgeSymbol, *operands: Any) -> EdgeSymbol:
        return function(self.tracing, self, *operands)

    return method


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and", "rand", "or", "ror"),
    *("neg", "invert", "abs", "floordiv", "mod"),
):
    setattr(EdgeSymbol, f"__{_name}__", _method(_name))
