"""Shapes of documents: a tiny schema of types, so that no rule meets a member of the wrong kind."""

from __future__ import annotations

ANY = object


def problems(value, shape, at: str = ""):
    """Yield (pointer, sentence) wherever `value` is not of `shape`.

    A shape is a type, a tuple of shapes (any of them), None, a list of one shape, or a dict of members
    where a name ending in "?" may be absent. Members that the shape does not name are allowed.
    """
    if isinstance(shape, dict):
        yield from _object(value, shape, at)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield at, f"expected a list, found {_kind(value)}"
            return
        for position, inner in enumerate(value):
            yield from problems(inner, shape[0], f"{at}/{position}")
    elif isinstance(shape, tuple):
        if not any(fits(value, choice) for choice in shape):
            yield at, f"expected {' or '.join(_name(choice) for choice in shape)}, found {_kind(value)}"
    elif not _is(value, shape):
        yield at, f"expected {_name(shape)}, found {_kind(value)}"


def fits(value, shape) -> bool:
    return next(problems(value, shape), None) is None


def _object(value, shape, at):
    if not isinstance(value, dict):
        yield at, f"expected an object, found {_kind(value)}"
        return
    for name, inner in shape.items():
        key = name.removesuffix("?")
        if key in value:
            yield from problems(value[key], inner, f"{at}/{key}")
        elif not name.endswith("?"):
            yield at, f"expected a member {key!r}, found none"


def _is(value, kind) -> bool:
    if kind is None:
        return value is None
    if kind is int:
        return type(value) is int  # True is an int to Python, never to us
    return isinstance(value, kind)


def _name(shape) -> str:
    if shape is None:
        return "null"
    if isinstance(shape, dict):
        return "an object"
    if isinstance(shape, list):
        return "a list"
    return {str: "a string", int: "an integer", bool: "a boolean", dict: "an object", list: "a list"}.get(
        shape, "a value"
    )


def _kind(value) -> str:
    return "null" if value is None else _name(type(value))
