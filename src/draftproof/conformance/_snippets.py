"""Lines of Python that show a failure again."""

from __future__ import annotations

import importlib
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from draftproof.conformance._calls import Arrays, Requests
    from draftproof.conformance._step_cases import Case
    from draftproof.conformance._subject import Host

__all__ = ["Snippets"]

_LIBRARIES = {
    "numpy": ("", "{}"),
    "torch": ("import torch", "torch.from_numpy({})"),
    "jax": ("import jax.numpy as jnp", "jnp.asarray({})"),
    "cupy": ("import cupy", "cupy.asarray({})"),
    "array_api_strict": ("import array_api_strict", "array_api_strict.asarray({})"),
}


class Snippets:
    """Writes snippets for one subject."""

    def __init__(
        self, called: Callable[..., Any], name: str, xp: Any, arrays: Arrays
    ) -> None:
        self._called = called
        self._name = name
        self._arrays = arrays
        # A function that converts has no text: its arrays are shown as NumPy's.
        self._import, self._form = _LIBRARIES.get(
            xp if isinstance(xp, str) else "numpy", ("", "{}")
        )
        self._converted = not isinstance(xp, str)

    def verifier(self, requests: Requests, expected: str, condition: str) -> str:
        """Return a snippet that calls a verifier and asserts a condition."""
        coins, rows = np.dtype(self._arrays.coins).name, self._arrays.dtype
        ids = "int64" if coins == "float64" else "int32"
        given = {
            "draft_probs": (requests.draft, rows),
            "target_probs": (requests.target, rows),
            "draft_tokens": (requests.tokens, ids),
            "uniforms": (requests.uniforms, coins),
        }
        call = f"accepted, token = subject({', '.join(given)})"
        again = "" if requests.recipes is None else requests.recipes[0]
        return self._lines(given, call, f"# {expected}\nassert {condition}", again)

    def step(self, case: Case, expected: str, condition: str, *, mapping: bool) -> str:
        """Return a snippet that calls a step and asserts a condition."""
        given: dict[str, Any] = {
            "draft_probs": (case.draft, self._arrays.dtype),
            "target_probs": (case.target, self._arrays.dtype),
        }
        first, second = ('"accept_prob"', '"residual"') if mapping else ("0", "1")
        lines = [
            f"result = subject({', '.join(given)}, {case.token})",
            f"accept_prob = float(result[{first}])",
            f"residual = np.asarray(result[{second}].tolist())",
            "draft, target = (np.asarray(r.tolist()) for r in (draft_probs, target_probs))",
            "needed = np.maximum(target - draft, 0) / np.maximum(target - draft, 0).sum()",
            f"# {expected}",
            f"assert {condition}",
        ]
        return self._lines(given, "\n".join(lines), "", case.recipe)

    def _lines(
        self,
        given: Mapping[str, tuple[Host | None, str]],
        call: str,
        expected: str,
        recipe: str = "",
    ) -> str:
        lines = ["import numpy as np", self._import, self._subject()]
        if self._converted:
            lines.append("# These are NumPy's arrays: convert them as the check did.")
        if recipe:
            lines.append(f"rows = {recipe}")
        part = "[None]" if "uniforms" in given else "[0]"
        for i, (name, (host, dtype)) in enumerate(given.items()):
            # The uniforms come last, behind all that the recipe makes.
            values = f"rows[{i}]{part}" if recipe and name != "uniforms" else ""
            lines.append(f"{name} = {self._array(host, dtype, values)}")
        return "\n".join(filter(None, [*lines, call, expected]))

    def _subject(self) -> str:
        module, _, function = self._name.partition(":")
        try:
            imported: Any = importlib.import_module(module)
            found = reduce(getattr, function.split("."), imported)
        except (ImportError, AttributeError, ValueError):
            found = None
        if found is not self._called or module == "__main__":
            return f"# `subject` is {self._name}"
        first, _, rest = function.partition(".")
        attribute = f".{rest}" if rest else ""
        return f"from {module} import {first}\nsubject = {first}{attribute}"

    def _array(self, host: Host | None, dtype: str, values: str) -> str:
        if host is None:
            return "None"
        known = np.float32 if dtype == "bfloat16" else np.dtype(dtype)
        made = f"np.asarray({values or host.tolist()}, dtype=np.{np.dtype(known).name})"
        made = self._form.format(made)
        if host.size == 0:  # a list cannot say how long its rows are
            made = f"{made}.reshape({host.shape})"
        if dtype == "bfloat16":
            torch = self._import == "import torch"
            made += ".bfloat16()" if torch else '.astype("bfloat16")'
        # A list of numbers has no name for what is not one.
        return made.replace("nan", "np.nan")
