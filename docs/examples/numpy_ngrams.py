"""Speculative decoding in thirty lines of NumPy: the loop of ``draftproof demo``.

A bigram model drafts words and a trigram model verifies them, four at a time. Both have
read the topics of Python's ``help()``. What comes out has the law of the trigram model.
To run it: ``python docs/examples/numpy_ngrams.py``.
"""

from collections import Counter, defaultdict
from functools import partial
from pydoc_data.topics import topics

import numpy as np

from draftproof import draw, verify_chain


def read(text, order):
    """Count what follows each context of fewer than `order` words."""
    after = defaultdict(Counter)
    for length in range(order):
        for end in range(length, len(text)):
            after[tuple(text[end - length : end])][text[end]] += 1
    return after


def law(after, size, order, context):
    """Return the law of the next word: each context is mixed with the shorter ones."""
    probs = np.full(size, 1 / size)
    for length in range(min(order, len(context) + 1)):
        if seen := after.get(tuple(context[len(context) - length :])):
            counts = np.bincount(list(seen), list(seen.values()), size)
            probs = (counts + len(seen) * probs) / (seen.total() + len(seen))
    return probs


def decode(draft, target, text, calls, rng, k=4):
    """Return the text with what `calls` calls of the target, k + 1 rows each, add to it."""
    for _ in range(calls):
        rows, drafted = [], []
        for uniform in rng.random(k):
            rows.append(draft(text + drafted))
            drafted.append(int(draw(rows[-1], uniform)))
        goal = np.stack([target(text + drafted[:end]) for end in range(k + 1)])
        # Fresh numbers: those that drew the drafts must not decide about them as well.
        verdict = verify_chain(np.stack(rows), goal, np.asarray(drafted), rng.random(k + 1))
        text = [*text, *drafted[: verdict.num_accepted], int(verdict.next_token)]
    return text


def main(calls=30, seed=0):
    """Print the text, and how many words one call of the target brings."""
    words, text = np.unique(" ".join(topics.values()).split(), return_inverse=True)
    models = [partial(law, read(text.tolist(), n), len(words), n) for n in (2, 3)]
    found = decode(*models, text[:2].tolist(), calls, np.random.default_rng(seed))
    print(*words[found], f"\n{(len(found) - 2) / calls:.2f} words per call of the target")


if __name__ == "__main__":
    main()
