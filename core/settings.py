"""Settings: the class and options of a solver or preconditioner, without a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from .constructors import explained, require_begun
from .deprecation import OldOptions
from .errors import InvalidArgument, UnsupportedOperation
from .hooks import is_of_wollemi
from .operator_type import OperatorType
from .provided import Provided
from .setup_time import record_setup
from .suggest import parameter_hint

#: Constructor parameters that are operands and executors, not options.
_OPERANDS = ("A", "executor")


@Provided
def declared_name(kind: type) -> str | None:
    """Return the name of a class in the entry points; the table of these provides it."""
    return None


class Settings:
    """The class of a solver or preconditioner with its options, without a matrix.

    A call without a matrix, such as ``Cg(rtol=1e-8)``, creates one. Settings print as that call,
    compare equal by class and options, and can be pickled.

    Parameters
    ----------
    kind : type
        The configured class.
    options : mapping
        The given options by name.

    Raises
    ------
    InvalidArgument
        If ``kind`` has no option of that name.

    Examples
    --------
    >>> import numpy as np, wollemi as wl
    >>> settings = wl.solvers.Cg(rtol=1e-8, M=wl.preconditioners.Jacobi())
    >>> settings
    Cg(rtol=1e-08, M=Jacobi())
    >>> settings.on(wl.Csr(np.diag([2.0, 4.0]))) @ np.array([2.0, 2.0])
    array([1. , 0.5])
    """

    __slots__ = ("kind", "options")

    kind: type
    options: Mapping[str, Any]

    def __init__(self, kind: type, options: Mapping[str, Any]) -> None:
        old = _old_options(kind)
        if old is not None:
            options = old.by_present_names(kind, options, stacklevel=4)
        _require_known(kind, options, option_names(kind))
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "options", MappingProxyType(dict(options)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise InvalidArgument(f"settings are a value: make others with .replace({name}=...)")

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise an error that explains how to make a solver from settings."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name not in self.__slots__ and hasattr(self.kind, name):
                message += f": these are settings without a matrix; {self!r}.on(A) has it"
            raise AttributeError(message, name=name, obj=self)

    def on(self, A: Any, **operands: Any) -> Any:
        """Return the solver or the preconditioner for ``A``.

        Parameters
        ----------
        A : LinOp, matrix or array
            The operands.
        **operands
            ``executor=``, where the class takes one.
        """
        return self.kind(A, **operands, **self.options)

    def replace(self, **options: Any) -> Self:
        """Return settings in which these options replace the present ones."""
        return type(self)(self.kind, {**self.options, **options})

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that contains only JSON types.

        The key ``"solver"`` or ``"preconditioner"`` has the name; the other keys are the options.

        Raises
        ------
        InvalidArgument
            If an option cannot be stored in a file, such as an operator or a function.

        Examples
        --------
        >>> import wollemi as wl
        >>> wl.solvers.Cg(rtol=1e-8, M=wl.preconditioners.Jacobi()).to_dict()
        {'solver': 'cg', 'rtol': 1e-08, 'M': {'preconditioner': 'jacobi'}}
        """
        role: str = self.kind.ROLE  # type: ignore[attr-defined]
        return {role: self.name} | {n: _plain(n, value) for n, value in self.options.items()}

    @property
    def name(self) -> str:
        """The name of the class in dictionaries and in ``M="..."``, such as ``cg``."""
        known: str | None = vars(self.kind).get("registered_name")
        if known is None and not is_of_wollemi(self.kind):
            known = declared_name(self.kind)
        return self.kind.__name__.lower() if known is None else known

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.kind.__name__}({given})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Settings)
            and self.kind is other.kind
            and dict(self.options) == dict(other.options)
        )

    def __hash__(self) -> int:
        return hash((self.kind, tuple(sorted(self.options))))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, dict(self.options))


class Configurable(OperatorType):
    """The metaclass of classes that are constructed from a matrix and options.

    A call without a matrix returns :class:`Settings`. Instances store their settings.
    """

    #: Whether instances can work on a member of a group, with sums over all members.
    SHARED = False

    #: Old spellings of options, which still work and warn.
    old_options: OldOptions | None = None

    #: Other libraries' options that have no single counterpart: how to get the same effect.
    _other_options: Mapping[str, str] = MappingProxyType({})

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        """Make an instance, or settings if the call has no matrix."""
        if not arguments and "A" not in options:
            return Settings(cls, options)
        if cls.old_options is not None:
            arguments, options = cls.old_options.by_name(cls, arguments, options)
        _require_known(cls, options, [*option_names(cls), *_OPERANDS])
        from .distributed.shared import constructing, is_shared, on_every_member, shared_among

        if batch_among(arguments, options):
            return cls._of_batch(arguments, options)
        group = shared_among(arguments, options)
        if not cls.SHARED and is_shared(arguments, options):
            raise UnsupportedOperation(
                f"{cls.__name__} is not written for matrices that a group shares: it needs all "
                "rows, or whole vectors, on one executor; use it on wl.Csr(A.to_local())"
            )
        if group is not None:
            return on_every_member(group, cls, arguments, options)
        began = perf_counter()
        named = _options_by_name(cls, arguments, options)
        with constructing(cls, arguments, options, named), explained(cls, options):
            made = super().__call__(*arguments, **options)
        require_begun(made)
        M = options.get("M", arguments[1] if len(arguments) > 1 else None)
        record_setup(made, began, *([M] if isinstance(type(M), Configurable) else ()))
        made.__dict__["_options"] = named
        return made

    def _of_batch(cls, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return a container with one instance for each matrix of a batch."""
        of_batch = getattr(cls, "of_batch", None)
        if of_batch is None:
            raise UnsupportedOperation(
                f"{cls.__name__} is not written for batches of matrices: use it on A[k], one "
                "matrix at a time"
            )
        return of_batch(*arguments, **options)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of the constructor and its bases, for ``help`` and editors."""
        parameters = _parameters(cls).values()
        return inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))


def batch_among(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Return whether the matrix in a call is a batch of matrices."""
    A = arguments[0] if arguments else options.get("A")
    return bool(getattr(type(A), "_is_batch", False))


def settings_of(operator: Any) -> Settings:
    """Return the settings with which an instance of a :class:`Configurable` class was made.

    Options that are such instances themselves are replaced by their settings.
    """
    options = {
        name: settings_of(value) if isinstance(type(value), Configurable) else value
        for name, value in operator._options.items()
    }
    return Settings(type(operator), options)


def _require_known(kind: type, options: Mapping[str, Any], known: list[str]) -> None:
    """Raise an error unless a class has all given options.

    Raises
    ------
    InvalidArgument
        If it does not; the message gives the most similar option, and all options.
    """
    for name in options:
        if name not in known:
            elsewhere = kind._other_options.get(name) if isinstance(kind, Configurable) else None
            words = parameter_hint(name, known) if elsewhere is None else f"{elsewhere}; "
            raise InvalidArgument(
                f"{kind.__name__} has no option {name!r}; {words}its options: "
                f"{', '.join(name for name in known if name != 'A')}"
            )


def _old_options(kind: type) -> OldOptions | None:
    return getattr(kind, "old_options", None)


def option_names(kind: type) -> list[str]:
    """Return the names of a class's options, beginning with its own."""
    return [name for name in _parameters(kind) if name not in _OPERANDS]


@cache
def _parameters(kind: type) -> dict[str, inspect.Parameter]:
    """Return a constructor's parameters; ``**options`` stands for the next class's."""
    found: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        init = base.__dict__.get("__init__")
        if init is None:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                found.setdefault(parameter.name, parameter)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found


@cache
def _positional(kind: type) -> tuple[str, ...]:
    init = inspect.signature(kind.__init__)  # type: ignore[misc]
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in list(init.parameters.values())[1:] if p.kind in places)


def _options_by_name(
    kind: type, arguments: tuple[Any, ...], options: dict[str, Any]
) -> dict[str, Any]:
    named = dict(zip(_positional(kind), arguments, strict=False)) | options
    return {name: value for name, value in named.items() if name not in _OPERANDS}


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(name, item) for item in value]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a scalar of NumPy
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise InvalidArgument(
        f"{name}: a {type(value).__name__} cannot be written to a file; give its settings, such "
        "as Jacobi(), or its name"
    )
