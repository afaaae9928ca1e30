"""Records one call as a CUDA graph and tells the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wollemi.core.errors import CaptureRefused

#: The outcomes of a call within a capture.
RECORDED, REFUSED, FIRST, NO_WORK, NOT_CALLED = (
    "recorded",
    "refused",
    "refused before a first call",
    "no work for the device",
    "not called",
)


#: An error of ours says that the call is none; CUDA's and CuPy's are foreign.
_KNOWN = (
    "ArraysGivenUp", "InvalidArgument", "InvalidMatrix", "ShapeMismatch", "TypeError",
    "Unsupported",
)  # fmt: skip


class Outcome(NamedTuple):
    """The outcome of a call; ``told`` is the error."""

    kind: str
    told: str = ""
    wrong: bool = False


def checked(result: tuple[Any, ...]) -> Any:
    """Return the results of a function of the CUDA runtime."""
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


def nodes_of(graph: Any) -> int:
    """Return how many nodes a graph has."""
    from cuda.bindings import runtime

    found = checked(runtime.cudaGraphGetNodes(graph))
    return int(found[-1])


def numbers_of(result: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of a result on the host."""
    if result is None or isinstance(result, (str, bytes, type)):
        return []
    if hasattr(result, "detach"):
        result = result.detach()
        return [(result.float() if result.dtype.itemsize < 4 else result).cpu().numpy()]
    if hasattr(result, "get") and hasattr(result, "__cuda_array_interface__"):
        return [result.get()]
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, (tuple, list)):
        return [array for part in result for array in numbers_of(part)]
    data = getattr(result, "data", None) if hasattr(result, "indices") else None
    return [] if data is None else numbers_of(data)


def record(
    xp: Any,
    make: Callable[[], Callable[[], Any]],
    inputs: Sequence[Any],
    *,
    warm: bool,
    stream: Any = None,
) -> Outcome:
    """Record a call in the strictest mode of a capture, and replay it with other inputs.

    Parameters
    ----------
    xp : module
        CuPy.
    make : callable
        Returns the call, on an object that no other call has changed.
    inputs : sequence of arrays
        The operands of the call, which it reads in place.
    warm : bool
        Whether the call is made twice before.
    """
    from cuda.bindings import runtime

    stream = stream or xp.cuda.Stream(non_blocking=True)
    before = [x.copy() for x in inputs]
    xp.cuda.Device().synchronize()  # copies are made on another stream
    try:
        call, wanted = make(), []
        xp.cuda.Device().synchronize()  # so is the object
        if warm:
            with stream:
                call(), call()
                for factor in (2, 1):
                    _write(inputs, before, factor)
                    wanted.append(numbers_of(call()))
                stream.synchronize()
    except Exception as error:  # whatever a call says of arguments that it does not take
        return Outcome(NOT_CALLED, f"{type(error).__name__}: {error}")
    xp.cuda.Device().synchronize()
    result, refusal, failure, ended, graph = _captured(stream, call)
    count = nodes_of(graph) if int(ended) == 0 else 0
    replayed = warm and count > 0 and not refusal and not failure
    if int(ended) == 0 and not replayed:
        checked((*runtime.cudaGraphDestroy(graph), None))
    if failure:
        wrong = not failure.startswith(_KNOWN) or int(ended) != 0
        return Outcome(NOT_CALLED, failure, wrong=wrong)
    if int(ended) != 0:
        return Outcome(
            REFUSED if refusal else RECORDED,
            f"{refusal} the capture ended with {ended.name}",
            wrong=True,
        )
    if refusal:
        kind = FIRST if "once before the capture" in refusal else REFUSED
        return Outcome(kind, f"{refusal} [{count} nodes]", wrong=count > 0)
    if not replayed:
        return Outcome(RECORDED if count else NO_WORK)
    return _replayed(xp, stream, graph, inputs, before, result, wanted)


def record_in_torch(make: Callable[[], Callable[[], Any]], leaves: Sequence[Any]) -> Outcome:
    """Record a call on tensors in PyTorch's capture, at first and after a first call.

    Parameters
    ----------
    make : callable
        Returns the call, on objects that no other call has changed.
    leaves : sequence of Tensor
        The operands of the call, which it reads in place.
    """
    first = _recorded_in_torch(make, leaves, warm=False)
    if first.wrong or first.kind not in (FIRST, RECORDED):
        return first
    return _recorded_in_torch(make, leaves, warm=True)


def _recorded_in_torch(
    make: Callable[[], Callable[[], Any]], leaves: Sequence[Any], *, warm: bool
) -> Outcome:
    import torch

    before = [x.detach().clone() for x in leaves]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    wanted, refusal, failure, result = [], "", "", None
    with torch.cuda.stream(side):
        # PyTorch makes the handle of its library of dense products at its first use.
        torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
        try:
            call = make()
            for factor in (1, 1, 2, 1) if warm else ():
                _fill(leaves, before, factor)
                wanted.append(numbers_of(call()))
        except Exception as error:  # whatever a call says of arguments that it does not take
            return Outcome(NOT_CALLED, f"{type(error).__name__}: {error}")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    try:
        with torch.cuda.graph(graph, stream=side):
            try:
                result = call()
            except CaptureRefused as error:
                refusal = str(error)
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
    except Exception as error:
        return Outcome(NOT_CALLED, f"{refusal}{failure}; the capture ended: {error}", wrong=True)
    count = nodes_of(graph.raw_cuda_graph())
    if failure:
        return Outcome(NOT_CALLED, failure, wrong=not failure.startswith(_KNOWN))
    if refusal:
        kind = FIRST if "once before the capture" in refusal else REFUSED
        return Outcome(kind, f"{refusal} [{count} nodes]", wrong=count > 0)
    if not warm or not count:
        return Outcome(RECORDED if count else NO_WORK)
    told = ""
    for factor, want in zip((2, 1), wanted[-2:], strict=True):
        _fill(leaves, before, factor)
        graph.replay()
        torch.cuda.synchronize()
        told = told or _difference(numbers_of(result), want)
    return Outcome(RECORDED, told, wrong=bool(told))


def _fill(leaves: Sequence[Any], before: Sequence[Any], factor: int) -> None:
    for x, old in zip(leaves, before, strict=True):
        x.detach().copy_(old * factor)


class Captured(NamedTuple):
    """The result of a call within a capture, its errors, and the end of the capture."""

    result: Any
    refusal: str
    failure: str
    ended: Any
    graph: Any


def _captured(stream: Any, call: Callable[[], Any]) -> Captured:
    """Make a call within a capture in the strictest mode."""
    from cuda.bindings import runtime

    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    result, refusal, failure = None, "", ""
    with stream:
        checked((*runtime.cudaStreamBeginCapture(stream.ptr, mode), None))
        try:
            result = call()
        except CaptureRefused as error:
            refusal = str(error)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        return Captured(result, refusal, failure, *runtime.cudaStreamEndCapture(stream.ptr))


def _difference(got: Sequence[Any], want: Sequence[Any]) -> str:
    """Return how the numbers of a replay and of a call differ, empty if they do not."""
    for mine, theirs in zip(got, want, strict=True):
        if mine.shape != theirs.shape or not np.allclose(
            mine, theirs, rtol=1e-3, atol=1e-4, equal_nan=True
        ):
            return f"a replay differs: {mine.ravel()[:4]} and not {theirs.ravel()[:4]}"
    return ""


def _write(inputs: Sequence[Any], before: Sequence[Any], factor: int) -> None:
    for x, old in zip(inputs, before, strict=True):
        x[...] = old * factor


def _replayed(
    xp: Any,
    stream: Any,
    graph: Any,
    inputs: Sequence[Any],
    before: Sequence[Any],
    result: Any,
    wanted: list[Any],
) -> Outcome:
    """Replay a graph among other work, and compare its results with those of eager calls."""
    from cuda.bindings import runtime

    executable = checked(runtime.cudaGraphInstantiate(graph, 0))
    checked((*runtime.cudaGraphDestroy(graph), None))
    told = ""
    for factor, want in zip((2, 1), wanted, strict=True):
        with stream:
            _write(inputs, before, factor)
            # Memory that others allocate and write in between must not matter.
            for size in (1 << 8, 1 << 12, 1 << 16, 1 << 20):
                xp.full(size, 77, np.uint8)
            checked((*runtime.cudaGraphLaunch(executable, stream.ptr), None))
            stream.synchronize()
            got = numbers_of(result)
        told = told or _difference(got, want)
    checked((*runtime.cudaGraphExecDestroy(executable), None))
    return Outcome(RECORDED, told, wrong=bool(told))
