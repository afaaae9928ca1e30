"""The class of the classes of operators: abstract classes, of which subclasses alone are kinds."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, NoReturn

from .hooks import is_of_wollemi
from .own_operators import check_class


class OperatorType(ABCMeta):
    """A class of operators.

    ``isinstance`` asks an abstract class by a call of Python, which looks for classes that were
    registered as virtual subclasses; a repeated ``wl.solve`` asked twenty times. Operators have no
    virtual subclasses, so that the question is that of a plain class.
    """

    __instancecheck__ = type.__instancecheck__  # a method of Python would cost half of that call

    def __init__(cls, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        if not is_of_wollemi(cls):
            # Constructors of solvers and preconditioners have errors of their own.
            check_class(cls, constructs=type(cls) is OperatorType)

    def register(cls, subclass: type) -> NoReturn:
        """Refuse a virtual subclass.

        Raises
        ------
        TypeError
            Always: kernels rely on the attributes that operators inherit.
        """
        raise TypeError(
            f"{cls.__name__}.register: derive {subclass.__name__} from wl.LinOp instead; operators "
            "have no virtual subclasses"
        )
