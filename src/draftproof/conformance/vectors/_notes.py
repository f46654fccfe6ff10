"""What the flags of the cases mean."""

from __future__ import annotations

__all__ = ["FLAGS"]

_CONVENTIONS = {
    "CoinTie": "A coin equals its threshold. The rule is strict, u < h; with u <= h the "
    "decision is the other outcome. No law depends on it.",
    "DrawTie": "The last uniform times the sum of the weights equals a cumulative weight. "
    "The first token whose cumulative weight exceeds it is drawn; with 'reaches it' the "
    "other outcome.",
    "NotNormalised": "A row does not sum to 1, by rounding or on purpose. Rows are taken "
    "as they are. Where that matters, the outcome after dividing each target row by its "
    "sum is listed.",
    "NotRead": "Something illegal stands where the rule need not look. It may be ignored, "
    "or the input refused.",
    "ZeroDraftProbability": "q = 0 at a drafted token, which cannot have been drawn. By "
    "the product form, u * q < p, it is accepted iff p > 0; or the input is refused.",
    "ZeroResidual": "max(p - q, 0) is zero everywhere. A step returns zeros or the target "
    "row; a verifier draws from the target row, or refuses.",
}
_EDGES = {
    "EmptyDraft": "K = 0: nothing was drafted, and the next token is drawn from the "
    "target.",
    "LargestUniform": "The largest number below 1 of float32 or of float64: it must not "
    "be rounded to 1, and the draw must not run off the end.",
    "LongRow": "The rows are made by a rule, and too long for naive running sums.",
    "NearTie": "A uniform lies within 2^-20 of an edge. The plain formulas decide it "
    "rightly, for no product in them is rounded across the edge.",
    "Padding": "Tokens of -1: no draft here, and none behind. The draft rows there and "
    "the target rows behind the first are not read; the next token is drawn from the "
    "target row there, not from a residual.",
    "Subnormal": "Entries below the smallest normal float32. A device that flushes them "
    "to zero fails here, and should say so.",
    "ZeroTargetProbability": "p = 0 at a drafted token: never accepted, also at u = 0.",
    "ZeroUniform": "Uniforms of 0, or -0: no token of weight zero is accepted or drawn.",
    "ZeroWeightAtAnEnd": "The first or the last weight is zero: never drawn.",
}
_FEATURES = {
    "BonusToken": "Every draft is accepted: the next token is drawn from the target.",
    "LateSuccess": "The block rule goes by the last success, whatever failed before it.",
    "NoDraftRows": "Drafts without a law, of an n-gram table or an argmax: draft_probs is "
    "null, and stands for one-hot rows.",
    "ScaledResidual": "The block rule scales the target row by c < 1 in the residual.",
}
_ERRORS = {
    "NotFinite": "NaN or infinity in a row.",
    "TokenOutOfRange": "A drafted token that is neither -1 nor in 0..V-1; for a step, -1 "
    "is illegal too.",
    "UniformOutOfRange": "A uniform that is NaN or not in [0, 1).",
    "ZeroWeights": "All weights of a draw are zero.",
}

FLAGS = {
    flag: {"kind": kind, "description": description}
    for kind, flags in (
        ("convention", _CONVENTIONS),
        ("edge", _EDGES),
        ("feature", _FEATURES),
        ("error", _ERRORS),
    )
    for flag, description in flags.items()
}
"""A convention is where correct implementations differ; an edge, where careless ones
do; a feature, what ordinary cases exercise; an error must be refused."""
