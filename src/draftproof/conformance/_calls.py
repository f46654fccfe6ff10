"""Calls of a subject: arrays of its library in, NumPy out, and an eye on what it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from draftproof.conformance._subject import CouldNotRunError, converter, to_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from draftproof.conformance._subject import Convert, Host

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Arrays", "Decisions", "Requests", "UnusableError", "Verifier"]

CHUNK = 4096  # requests a call, so that there are few shapes to compile for
SHORT = 64  # tokens of a row; of longer ones calls are not filled up
EPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}


class UnusableError(Exception):
    """What a subject returned is so different that nothing more can be compared."""


class Requests(NamedTuple):
    """Chains to verify, as arrays of NumPy.

    Attributes
    ----------
    draft, target, tokens, uniforms
        As the verifier takes them.
    recipes
        Of long rows, the expression that makes them again, one for each request.
    """

    draft: Floats | None
    target: Floats
    tokens: Ints
    uniforms: Floats
    recipes: NDArray[np.object_] | None = None

    def take(self, index: Any) -> Requests:
        """Return some of the requests."""
        parts: list[Any] = [None if part is None else part[index] for part in self]
        return Requests(*parts)


class Decisions(NamedTuple):
    """What was decided: numbers accepted and next tokens."""

    accepted: Ints
    token: Ints


class Arrays:
    """How the arrays of a subject are made.

    Attributes
    ----------
    eps
        Of the coarser of the dtypes that rows and uniforms really have.
    """

    def __init__(self, xp: str | Convert, dtype: str) -> None:
        if dtype not in EPS:
            msg = f"`dtype` is {dtype!r}; needed is one of {', '.join(map(repr, EPS))}"
            raise ValueError(msg)
        self.dtype = dtype
        self.text = (xp if isinstance(xp, str) else "numpy", dtype)
        self._convert = converter(xp)
        try:
            self.row_eps = _eps(self.rows(np.ones(1)))
            uniform_eps = _eps(self._convert(np.ones(1)))
        except (TypeError, ValueError, AttributeError) as error:
            msg = f"`dtype` {dtype!r} cannot be made with `xp` {xp!r}: {error}"
            raise CouldNotRunError(msg) from error
        self.eps = max(self.row_eps, uniform_eps)
        self.sum_eps = min(self.row_eps, EPS["float32"])
        self.coins: type[np.floating[Any]] = (
            np.float64 if uniform_eps == EPS["float64"] else np.float32
        )

    def rows(self, host: Host) -> Any:
        """Return rows in the subject's library and dtype."""
        if self.dtype != "bfloat16":
            return self._convert(host.astype(self.dtype))
        array = self._convert(host.astype(np.float32))
        return array.bfloat16() if hasattr(array, "bfloat16") else array.astype("bfloat16")

    def ids(self, host: Host) -> Any:
        """Return tokens: int64, or what the library has instead."""
        wide = self.coins is np.float64
        return self._convert(host.astype(np.int64 if wide else np.int32))

    def uniforms(self, host: Host) -> Any:
        """Return uniforms: float64, or what the library has instead."""
        return self._convert(host.astype(self.coins))

    def rounded(self, host: Host) -> Floats:
        """Return rows as the subject sees them."""
        return to_host(self.rows(host)).astype(np.float64)

    def coin(self, host: Any) -> Floats:
        """Return uniforms as the subject sees them."""
        return np.asarray(host, dtype=self.coins).astype(np.float64)


def _eps(array: Any) -> float:
    # By name, for libraries differ in what a dtype is; "bfloat16" before "float16".
    dtype = str(array.dtype)
    return next(eps for name, eps in EPS.items() if name in dtype)


@dataclass
class Verifier:
    """A verifier that is called with NumPy's arrays.

    Attributes
    ----------
    problems
        What was wrong with any call, each with how many calls it was: an argument that
        was written to, a shape or a dtype.
    """

    called: Callable[..., Any]
    arrays: Arrays
    calls: int = 0
    problems: dict[str, str] = field(default_factory=dict)

    def __call__(self, requests: Requests, what: str) -> Decisions:
        """Decide all requests, in calls of one size.

        Raises
        ------
        CouldNotRunError
            If the subject raises.
        UnusableError
            If it returns anything but two arrays with a number for each request.
        """
        count = len(requests.tokens)
        if count == 1 or requests.target.shape[-1] > SHORT:
            return self._once(requests, what)
        parts = []
        for start in range(0, count, CHUNK):
            # The last call is filled up: one shape is one compilation.
            index = np.arange(start, start + CHUNK) % count
            parts.append(self._once(requests.take(index), what))
        return Decisions(
            *(np.concatenate(part)[:count] for part in zip(*parts, strict=True))
        )

    def attempt(self, requests: Requests) -> Decisions | str:
        """Decide what a subject need not support, or return the name of what it raised."""
        known = dict(self.problems)
        try:
            return self(requests, "a case that need not be supported")
        except CouldNotRunError as error:
            return type(error.__cause__ or error).__name__
        except UnusableError:
            self.problems = known
            return "nothing, but returns something of another shape"

    def _once(self, requests: Requests, what: str) -> Decisions:
        given = self._given(requests)
        self.calls += 1
        try:
            with np.errstate(all="ignore"):
                returned = self.called(*given)
        except Exception as error:
            msg = f"the subject raised {type(error).__name__} on {what}: {error}"
            raise CouldNotRunError(msg) from error
        self._look_at_inputs(given, requests, what)
        try:
            accepted, token = returned
        except (TypeError, ValueError) as error:
            msg = (
                f"the subject returned a {type(returned).__name__}; needed is a pair, "
                "numbers of accepted tokens and next tokens"
            )
            raise CouldNotRunError(msg) from error
        count = len(requests.tokens)
        return Decisions(
            self._read("num_accepted", accepted, count),
            self._read("next_token", token, count),
        )

    def _given(self, requests: Requests) -> list[Any]:
        draft = requests.draft
        return [
            None if draft is None else self.arrays.rows(draft.copy()),
            self.arrays.rows(requests.target.copy()),
            self.arrays.ids(requests.tokens.copy()),
            self.arrays.uniforms(requests.uniforms.copy()),
        ]

    def _look_at_inputs(self, given: list[Any], requests: Requests, what: str) -> None:
        names = ("draft_probs", "target_probs", "draft_tokens", "uniforms")
        before = self._given(requests)
        for name, old, new in zip(names, before, given, strict=True):
            if old is not None and not _same(to_host(old), to_host(new)):
                self.problems.setdefault("inputs are not written to", f"`{name}`, {what}")

    def _read(self, name: str, returned: Any, count: int) -> Ints:
        host = to_host(returned)
        if host.shape != (count,):
            detail = f"`{name}` has shape {host.shape}; needed is ({count},)"
            self.problems.setdefault("shape and dtype", detail)
        elif host.dtype.kind not in "iu":
            detail = f"`{name}` has dtype {host.dtype}; needed are integers"
            self.problems.setdefault("shape and dtype", detail)
        if host.size != count or host.dtype.kind not in "iufb":
            raise UnusableError
        return (
            np.nan_to_num(host.astype(np.float64), nan=-1).astype(np.int64).reshape(count)
        )


def _same(one: Host, other: Host) -> bool:
    if one.dtype.kind in "iu":
        return np.array_equal(one, other)
    return np.array_equal(one.astype(np.float64), other.astype(np.float64), equal_nan=True)
