"""The same rules on exact rationals, from the standard library alone.

Nothing here knows about arrays, and nothing is imported from the rest of the
package: it is the reference that the rest is compared with. Numbers may be
`int`, `fractions.Fraction`, `decimal.Decimal`, a string such as ``"1/3"``, or a
float of Python or NumPy, which is read as the rational number it stores.
"""

from draftproof.exact._step import (
    ExactStep,
    as_fraction,
    reconstruct,
    speculative_decode_step,
)

__all__ = ["ExactStep", "as_fraction", "reconstruct", "speculative_decode_step"]
