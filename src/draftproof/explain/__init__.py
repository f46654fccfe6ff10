"""The arithmetic of one step, worked out on paper: what ``draftproof explain`` prints.

Needs the extra ``kit``.
"""

from draftproof.explain._rows import Given, InputError, read_file, read_text
from draftproof.explain._show import show
from draftproof.explain._worked import Worked, work

__all__ = ["Given", "InputError", "Worked", "read_file", "read_text", "show", "work"]
