"""Checks of arguments, and shape checks with named axes."""

from __future__ import annotations

import contextlib
import numbers
import re
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

# Of one array. Operations on GPUs count entries in 32 bits; those on CPUs go on, until
# memory ends, which takes several arrays of that size in training.
MOST_ENTRIES = 2**31 - 1


def check_shapes(function: str, **specification: tuple[tf.Tensor, str]) -> None:
    """Checks static shapes against axis names; equal names must have equal sizes.

    Each specification is `(tensor, axes)`, where `axes` is a blank-separated list of
    axis names such as `"B T V"`. A leading `...` stands for any number of leading axes
    (the same ones wherever it appears). A name that is a number must match exactly.
    Sizes that are unknown while a graph is traced pass.

    Args:
        function: Name of the calling function; the message starts with it.
        **specification: Argument name -> (tensor, axes).

    Raises:
        ValueError: If a rank or a size does not fit; names argument, expected, found.
    """
    sizes: dict[str, tuple[int, str]] = {}
    leading: tuple[list[int | None], str] | None = None
    for argument, (tensor, axes) in specification.items():
        shape = tf.convert_to_tensor(tensor).shape
        if shape.rank is None:
            continue
        found = shape.as_list()
        names = axes.split()
        if names and names[0] == "...":
            names = names[1:]
            if len(found) < len(names):
                raise ValueError(
                    f"{function}: `{argument}` must have axes [{axes}], found shape "
                    f"{found}."
                )
            head = found[: len(found) - len(names)]
            found = found[len(found) - len(names) :]
            if leading is None:
                leading = (head, argument)
            elif len(head) != len(leading[0]) or any(
                a is not None and b is not None and a != b
                for a, b in zip(head, leading[0], strict=True)
            ):
                raise ValueError(
                    f"{function}: leading axes of `{argument}` are {head}, those of "
                    f"`{leading[1]}` are {leading[0]}; they must be equal."
                )
        if len(found) != len(names):
            raise ValueError(
                f"{function}: `{argument}` must have axes [{axes}], found shape "
                f"{shape.as_list()}."
            )
        for name, size in zip(names, found, strict=True):
            if size is None:
                continue
            expected, owner = sizes.get(name, (None, argument))
            if expected is None and name.isdigit():
                expected, owner = int(name), argument
            if expected is None:
                sizes[name] = (size, argument)
            elif expected != size:
                raise ValueError(
                    f"{function}: axis {name} of `{argument}` is {size}, expected "
                    f"{expected} (from `{owner}`)."
                )


def check_floating(function: str, **tensors: tf.Tensor) -> None:
    """Checks that every tensor has a floating-point dtype.

    Raises:
        TypeError: If one has not; names the argument and the dtype found.
    """
    for argument, tensor in tensors.items():
        dtype = tf.convert_to_tensor(tensor).dtype
        if not dtype.is_floating:
            raise TypeError(
                f"{function}: `{argument}` must be floating point, found {dtype.name}."
            )


def check_range(function: str, low: float, high: float, **values: Any) -> None:
    """Raises ValueError unless every entry is a number in [low, high].

    Infinity is none. What is not known while a graph is traced passes.
    """
    for argument, value in values.items():
        if tf.is_tensor(value) and not hasattr(value, "numpy"):
            continue
        if isinstance(value, str):
            raise ValueError(
                f"{function}: `{argument}` must be a number, found {value!r}."
            )
        entries = np.asarray(value, np.float64)
        if np.all((entries >= low) & (entries <= high) & np.isfinite(entries)):
            continue
        bounds = f"lie in [{low:g}, {high:g}]"
        if high == np.inf:
            bounds = f"be finite and at least {low:g}"
            if low == -np.inf:
                bounds = "be finite"
            elif 0 < low < 1e-30:  # The least number of a precision.
                bounds = "be finite and positive"
        worst = entries[~((entries >= low) & (entries <= high) & np.isfinite(entries))]
        raise ValueError(
            f"{function}: `{argument}` must {bounds}, found {worst.ravel()[0]:g}."
        )


def check_option(
    function: str, name: str, value: Any, options: Collection[str]
) -> None:
    """Raises ValueError unless an argument is one of the names that there are."""
    if value not in options:
        raise ValueError(
            f"{function}: `{name}` must be one of {', '.join(options)}; found "
            f"{value!r}."
        )


def check_integer(function: str, name: str, value: Any, least: int) -> None:
    """Raises ValueError unless an argument is an integer, and large enough.

    Args:
        function: Name of the calling function or class; the message starts with it.
        name: Name of the argument.
        value: What was given.
        least: The smallest value allowed.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise ValueError(
            f"{function}: `{name}` must be an integer >= {least}, found {value!r}."
        )


def check_ids(function: str, **tensors: Any) -> None:
    """Raises ValueError unless every tensor has an integer dtype."""
    for argument, tensor in tensors.items():
        dtype = tf.as_dtype(getattr(tensor, "dtype", None) or np.asarray(tensor).dtype)
        if not dtype.is_integer:
            raise ValueError(
                f"{function}: `{argument}` must be integer ids, found dtype "
                f"{dtype.name}."
            )


def checked_ids(function: str, name: str, ids: Any) -> tf.Tensor:
    """Returns ids that tables can be looked up with: int32 or int64.

    Raises:
        ValueError: If they are no integers.
    """
    check_ids(function, **{name: ids})
    ids = tf.convert_to_tensor(ids)
    if ids.dtype in (tf.int32, tf.int64):
        return ids
    wide = ids.dtype in (tf.uint32, tf.uint64)
    return tf.cast(ids, tf.int64 if wide else tf.int32)


def checked_tokens(
    function: str,
    tokens: npt.ArrayLike,
    vocabulary_size: int,
    name: str = "tokens",
    dtype: npt.DTypeLike = np.int64,
) -> np.ndarray:
    """Returns a stream of ids as a vector, which may be the one that was given.

    Args:
        function: Name of the calling function; the message starts with it.
        tokens: Integer ids `[T]`.
        vocabulary_size: Ids must be below it.
        name: Name of the argument.
        dtype: Of the result, an integer one that holds all ids.

    Raises:
        ValueError: If `tokens` is not a vector of integers in `[0, vocabulary_size)`.
    """
    ids = np.asarray(tokens)
    if ids.ndim != 1:
        raise ValueError(
            f"{function}: `{name}` must be a vector, found shape {list(ids.shape)}."
        )
    if ids.size == 0:
        return np.zeros(0, dtype)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(
            f"{function}: `{name}` must be integer ids, found dtype {ids.dtype}."
        )
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocabulary_size:
        raise ValueError(
            f"{function}: `{name}` must be ids in [0, {vocabulary_size}), found "
            f"{low}..{high}."
        )
    return ids.astype(dtype, copy=False)


# === Checks that only a running graph can make ===

# Ends the message of `check_running`, before what was found.
_FOUND = ", found"
# What to do about ids that a model has not.
_ENCODE = (
    "Encode the text with that vocabulary; what fills up rows gets some id of it, such "
    "as 0, and weight 0"
)


def check_running(holds: tf.Tensor, message: str, found: Any) -> list[tf.Operation]:
    """Checks what a graph knows only as it runs.

    In a graph the failure is an `InvalidArgumentError` in the midst of a description of
    the graph; `plain_errors` makes one line of it. XLA leaves the check out.

    Args:
        holds: bool scalar.
        message: Starts with the function's name and ends with what must be, without
            what was found.
        found: A scalar.

    Returns:
        What must run before the values that were checked are used: the control
        dependencies, none in eager mode.

    Raises:
        ValueError: In eager mode, if it does not hold.
    """
    if tf.executing_eagerly():
        if not holds:
            raise ValueError(f"{message}{_FOUND} {np.asarray(found)}.")
        return []
    return [tf.debugging.Assert(holds, [message + _FOUND, found])]


def check_logits_size(
    function: str, positions: int | tf.Tensor | None, vocabulary_size: int | None
) -> list[tf.Operation]:
    """Checks that there are no more logits than one array may hold.

    Args:
        function: Name of the calling function or layer; the message starts with it.
        positions: Number of positions; a scalar where a graph knows it only as it runs,
            which then checks it, or None for no check.
        vocabulary_size: Logits of a position; there is no check where a graph does not
            know it.

    Returns:
        What must run before the logits do; see `check_running`.

    Raises:
        ValueError: If there are more and their number is known.
    """
    if positions is None or not vocabulary_size:
        return []
    most = MOST_ENTRIES // vocabulary_size
    message = (
        f"{function}: an array holds at most {MOST_ENTRIES:,} numbers, 8.0 GiB in "
        "single precision: choose a smaller `window` or `batch_size`. Positions (rows "
        f"times `window`) with {vocabulary_size:,} logits each must be at most {most:,}"
    )
    if tf.is_tensor(positions):
        return check_running(positions <= most, message, positions)
    if positions > most:
        raise ValueError(f"{message}{_FOUND} {positions}.")
    return []


def known_rank(function: str, name: str, tensor: Any, axes: str) -> tf.Tensor:
    """Returns a tensor whose number of axes a graph knows.

    A step that was traced for one rank and gets another is traced for any, from which
    no shape follows.

    Args:
        function: Name of the calling function or class; the message starts with it.
        name: Name of the argument.
        tensor: The tensor.
        axes: Names of its axes, such as `"B T"`.

    Raises:
        ValueError: If it has others, as `check_running` if the graph does not know.
    """
    tensor = tf.convert_to_tensor(tensor)
    if tensor.shape.rank is not None:
        check_shapes(function, **{name: (tensor, axes)})
        return tensor
    rank = len(axes.split())
    message = (
        f"{function}: `{name}` must have axes [{axes}]. Their number must be {rank}"
    )
    found = tf.rank(tensor)
    with tf.control_dependencies(check_running(found == rank, message, found)):
        tensor = tf.identity(tensor)
    tensor.set_shape([None] * rank)
    return tensor


def known_ids(
    name: str,
    vocabulary_size: int,
    argument: str,
    ids: Any,
    weights: Any = None,
    remedy: str = _ENCODE,
) -> tf.Tensor:
    """Returns ids, which fail to compute unless all are in a vocabulary.

    Without it a CPU fails with a description of the graph, and a GPU reads zeros.

    Args:
        name: Of the model or layer, for the message.
        vocabulary_size: Ids must be below it.
        argument: What the ids are.
        ids: Int, any shape.
        weights: Of that shape: where they are 0, ids may be anything; None: nowhere.
        remedy: What to do, for the message.

    Raises:
        ValueError: If ids are no integers, or, in eager mode, not in the vocabulary.
    """
    numbers = checked_ids(name, argument, ids)
    if weights is not None:
        numbers = tf.where(tf.cast(weights, tf.bool), numbers, tf.zeros_like(numbers))
    least, most = tf.reduce_min(numbers), tf.reduce_max(numbers)
    checked = check_running(
        (least >= 0) & (most < vocabulary_size),
        f"{name}: `{argument}` must be ids of the model's vocabulary. {remedy}. Ids "
        f"must be in [0, {vocabulary_size})",
        tf.where(least < 0, least, most),
    )
    with tf.control_dependencies(checked):
        return tf.identity(ids)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turns a failure of `check_running` into a ValueError of one line.

    Raises:
        ValueError: If such a check fails in a graph that runs inside.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        pattern = rf"assertion failed: \[(.*?{_FOUND})\] \[([^\]]*)\]"
        failure = re.search(pattern, error.message)
        if failure is None:
            raise
        # The graph quotes its constants.
        text = failure[1].replace("\\'", "'")
        message = f"{text} {failure[2]}."
    else:
        return
    raise ValueError(message)
