"""English text that every Python brings along."""

from __future__ import annotations

__all__ = ["read_words"]


def read_words() -> list[str]:
    """Return the words of Python's own language reference, in a fixed order.

    Returns
    -------
    list of str
        About 65,000 words, 8,800 of them distinct, in Python 3.11: whatever stands
        between white space in the topics of ``help()``.
    """
    from pydoc_data.topics import topics

    return [word for name in sorted(topics) for word in topics[name].split()]
