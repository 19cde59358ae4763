"""Arguments under the names that they had before. They work until version 0.2, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["renamed"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def renamed(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that takes old names of arguments too: `renamed(old="new")`."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for old, new in names.items():
                if old in kwargs:
                    said = f"{function.__name__}: {old} is called {new} now"
                    warnings.warn(said, DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
