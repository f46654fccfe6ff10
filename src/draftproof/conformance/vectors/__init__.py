"""Golden vectors: the rules as a file of cases, for tests in any language.

The file is made by `draftproof.exact` from the standard library alone, byte for byte the
same everywhere. Its form follows Project Wycheproof: groups of cases, each ``valid``,
``invalid`` or ``acceptable``, with flags that name the convention or the edge.
"""

from draftproof.conformance.vectors._file import generate, load, schema, write

__all__ = ["generate", "load", "schema", "write"]
