"""The metaclass of operator classes: abstract classes without virtual subclasses."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, NoReturn

from .hooks import is_of_wollemi
from .own_operators import check_class


class OperatorType(ABCMeta):
    """A class of operators.

    For an abstract class, ``isinstance`` is a Python call that also searches for registered virtual
    subclasses, and a repeated ``wl.solve`` made twenty such calls. Operators have no virtual
    subclasses, so this metaclass uses the test of plain classes.
    """

    __instancecheck__ = type.__instancecheck__  # a Python method would save only half

    def __init__(cls, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not is_of_wollemi(cls):
            # Constructors of solvers and preconditioners check this themselves.
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
