"""The name of the fault that explains what a verifier decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftproof.conformance._cells import ULPS, emitted_law
from draftproof.conformance._judgement import differing, distance, expected, observe
from draftproof.conformance._wrong import WRONG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftproof.conformance._calls import Arrays, Verifier
    from draftproof.conformance._judgement import Observed
    from draftproof.conformance._variants import Variant

__all__ = ["by_decisions", "by_law"]

_NEAR = 0.02
_COARSE = ("two tokens", "three tokens")  # of others, fine grids have too many points


def by_decisions(seen: Sequence[Observed], arrays: Arrays) -> str | None:
    """Return the first fault that decides as was decided, at every point in every cell.

    Points within a few ulp of where the faulty rule itself decides anew say nothing.
    """
    margin = ULPS * arrays.eps
    for name, variant in WRONG.items():
        if all(_explains(variant, one, margin) for one in seen):
            return name
    return None


def _explains(variant: Variant, observed: Observed, margin: float) -> bool:
    needed, gap = expected(variant, observed.points)
    differs = differing(needed, observed.decided)
    return not bool((differs & (gap >= margin)).any())


def by_law(verifier: Verifier, seen: Sequence[Observed], arrays: Arrays) -> str | None:
    """Return the fault whose laws are the ones that come out, for other uses of uniforms.

    The laws are those on a fine grid, so near enough has to be good enough: a total
    variation of 0.02 on every model, and nearer than the target itself.
    """
    laws = []
    for one in seen:
        if one.model.name in _COARSE:
            fine = observe(verifier, one.model, arrays, refined=16, places="middle")
            laws.append(
                (one.model, emitted_law(fine.model, fine.cells, fine.points, fine.decided))
            )
    if not laws or all(distance(law, model.target_law()) < _NEAR for model, law in laws):
        return None
    found = {
        name: max(distance(law, variant.joint_law(model)) for model, law in laws)
        for name, variant in WRONG.items()
    }
    nearest = min(found, key=found.__getitem__)
    return nearest if found[nearest] < _NEAR else None
