"""Methods that subclasses define under a public name, and wollemi calls under a private one.

In wollemi's own classes these names have a leading underscore, so that they do not appear among the
methods for users. In every class both names refer to the same method.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from .deprecation import Deprecation, register_deprecation
from .errors import InvalidArgument

F = TypeVar("F", bound=Callable[..., Any])

#: Stack frames from the warning to the class statement: ``__init_subclass__``, and ABCMeta's
#: ``__new__``.
_TO_CLASS_STATEMENT = 3


def required(hook: F) -> F:
    """Mark a hook that a class must define before it can have instances.

    ``abstractmethod`` would make type checkers require the public name, which wollemi's own classes
    leave to :class:`Hooked`.
    """
    hook.__isabstractmethod__ = True  # type: ignore[attr-defined]
    return hook


class Hook(NamedTuple):
    """A method that subclasses define.

    Attributes
    ----------
    private : str
        The name by which wollemi calls it.
    old : Deprecation
        The deprecation warning for classes of other packages that define the private name.
    """

    private: str
    old: Deprecation


def hook(kind: str, private: str, public: str) -> Hook:
    """Return a hook of a class; its private name is registered as deprecated."""
    name = f"{kind}.{private} as a method of your class"
    return Hook(private, register_deprecation(name, "0.3", "0.5", public))


class Hooked:
    """The base of classes with hooks.

    Attributes
    ----------
    HOOKS : mapping
        The hooks that a class adds to the hooks of its bases, by public name.
    """

    HOOKS: ClassVar[Mapping[str, Hook]] = {}

    #: The methods that subclasses define and wollemi calls under the same name, as far as this
    #: class adds them.
    CALLED: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = is_of_wollemi(cls)
        for base in cls.__mro__:
            for public, (private, old) in vars(base).get("HOOKS", {}).items():
                if not ours and private in vars(cls) and public not in vars(cls):
                    old.warn(_TO_CLASS_STATEMENT)
                _tie(cls, public, private)
                if not ours and public in vars(cls):
                    _check_signature(cls, public, vars(base)[public])
            for name in () if ours else vars(base).get("CALLED", ()):
                if name in vars(cls) and base is not cls:
                    _check_signature(cls, name, vars(base)[name])


def is_of_wollemi(defined: type | Callable[..., Any]) -> bool:
    """Return whether this package defines a class or function, rather than its user."""
    return defined.__module__.partition(".")[0] == "wollemi"


def _check_signature(cls: type, name: str, of_base: Callable[..., Any]) -> None:
    """Raise an error unless a hook accepts the arguments of its calls.

    Raises
    ------
    InvalidArgument
        If it does not; the message gives both signatures.
    """
    own = vars(cls)[name]
    if not inspect.isfunction(own):
        return
    expected = list(inspect.signature(of_base).parameters)
    given = inspect.signature(own)
    try:
        given.bind(*expected)
    except TypeError:
        raise InvalidArgument(
            f"{cls.__name__}.{name}{given}: it is called as {name}({', '.join(expected[1:])}); "
            f"define {name}({', '.join(expected)})"
        ) from None


def _tie(cls: type, public: str, private: str) -> None:
    """Bind the nearest definition of a hook in a class to both names."""
    both = (public, private)
    for base in cls.__mro__:
        found = [vars(base)[name] for name in both if name in vars(base)]
        if found:
            break
    if len(found) == 1:  # a class with two definitions passes both on as they are
        for name in both:
            setattr(cls, name, found[0])
