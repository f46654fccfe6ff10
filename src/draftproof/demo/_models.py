"""A word-level n-gram model, strong or weak by its order."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["NGram"]


class NGram:
    r"""An n-gram model with Witten-Bell interpolation.

    The law after a context :math:`h`, seen :math:`c_h` times with :math:`n_h`
    different successors, mixes what was counted with the law after the context
    :math:`h'` that is one word shorter,

    .. math:: p(w \mid h) = \frac{c_{hw} + n_h \, p(w \mid h')}{c_h + n_h},

    down to the uniform law, so that no word is impossible.

    Parameters
    ----------
    tokens : sequence of int
        The text to learn, as indices into the vocabulary.
    size : int
        V, the size of the vocabulary.
    order : int
        How many words a count spans: 2 looks one word back.

    References
    ----------
    .. [1] Witten, Bell, "The Zero-Frequency Problem", IEEE Transactions on
       Information Theory 37(4), 1991.
    """

    def __init__(self, tokens: Sequence[int], size: int, order: int) -> None:
        self.size = size
        self.order = order
        self._successors = [_count(tokens, length) for length in range(order)]

    def law(self, context: Sequence[int]) -> NDArray[np.float32]:
        """Return the law of the next word, shape (V,), float32.

        Parameters
        ----------
        context : sequence of int
            The words so far; the last ``order - 1`` of them are looked at.
        """
        law = np.full(self.size, 1.0 / self.size)
        for length in range(min(self.order, len(context) + 1)):
            seen = self._successors[length].get(tuple(context[len(context) - length :]))
            if seen is None:
                break  # a longer context was not seen either
            words, counts = seen
            law *= len(words)
            law[words] += counts
            law /= counts.sum() + len(words)
        return law.astype(np.float32)


def _count(
    tokens: Sequence[int], length: int
) -> dict[tuple[int, ...], tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Count the successors of every context of `length` words."""
    successors: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for end in range(length, len(tokens)):
        successors[tuple(tokens[end - length : end])][tokens[end]] += 1
    return {
        context: (np.asarray(list(seen)), np.asarray(list(seen.values()), dtype=float))
        for context, seen in successors.items()
    }
