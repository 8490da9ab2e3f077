"""Shapes of documents: a tiny schema of types, so that no rule meets a member of the wrong kind.

A shape is a type, None, a tuple of shapes (any of them), a list of one shape, or a dict of members where
a name ending in "?" may be absent. Members that the shape does not name are allowed.
"""

from __future__ import annotations

_ABSENT = object()
_NAMES = {str: "a string", int: "an integer", bool: "a boolean", dict: "an object", list: "a list"}


class Shape:
    """A shape prepared once; `problem` is None for a value that fits, else (pointer, sentence)."""

    __slots__ = ("_members",)

    def __init__(self, members: dict):
        self._members = [
            (name.removesuffix("?"), name.endswith("?"), inner) for name, inner in members.items()
        ]

    def problem(self, value, at: str = "") -> tuple[str, str] | None:
        if type(value) is not dict:
            return at, f"expected an object, found {_kind(value)}"
        for name, optional, inner in self._members:
            member = value.get(name, _ABSENT)
            # What JSON gives is of exactly one type; True is an integer to Python, never here.
            if type(member) is inner or inner is object and member is not _ABSENT:
                continue
            if member is _ABSENT:
                if optional:
                    continue
                return at, f"expected a member {name!r}, found none"
            found = problem(member, inner, f"{at}/{name}")
            if found is not None:
                return found
        return None


def problem(value, shape, at: str = "") -> tuple[str, str] | None:
    """Where and why a value is not of a shape, or None."""
    if isinstance(shape, Shape):
        return shape.problem(value, at)
    if isinstance(shape, dict):
        return Shape(shape).problem(value, at)
    if isinstance(shape, tuple):
        if any(problem(value, choice, at) is None for choice in shape):
            return None
    elif isinstance(shape, list):
        if type(value) is list:
            found = (problem(inner, shape[0], f"{at}/{number}") for number, inner in enumerate(value))
            return next((each for each in found if each is not None), None)
    elif shape is object or value is shape is None or type(value) is shape:
        return None
    return at, f"expected {_name(shape)}, found {_kind(value)}"


def _name(shape) -> str:
    if isinstance(shape, tuple):
        return " or ".join(map(_name, shape))
    if isinstance(shape, (dict, Shape)):
        return "an object"
    return "null" if shape is None else "a list" if isinstance(shape, list) else _NAMES[shape]


def _kind(value) -> str:
    return "null" if value is None else _NAMES.get(type(value), "a value")
