"""The whole decoding loop of a ragged batch inside one ``jax.jit``.

A small transformer, initialised here, is the target; its first layer alone is the drafter.
Prompts and drafts of the requests differ in length. What is drawn for a request depends on
its key and its position only, so that it gets the same tokens alone and in a batch. To run
it: ``python docs/examples/jax_while_loop.py``.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from draftproof import apply_filters, draw, emitted_tokens, verify_chain

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 64, 32, 4, 2, 64
PARTS = {"qkv": 3 * WIDTH, "mix": WIDTH, "mlp": WIDTH}
# Noise that drew a draft must not decide about it: each use has a stream of its own.
STREAMS, DRAFTS, COINS, NEXT = 3, 0, 1, 2


class Requests(NamedTuple):
    """A batch of requests; under `jax.vmap` one of them."""

    key: Any
    prompt: Any  # (P,), padded with -1
    draft_length: Any
    temperature: Any  # 0 decodes greedily


def initialise(seed):
    """Return the weights of the model."""
    random = np.random.default_rng(seed)

    def table(rows, columns, scale=1.0):
        return jnp.asarray(random.standard_normal((rows, columns), np.float32) * scale)

    # The second layer changes less than the first, which drafts.
    scales = [WIDTH**-0.5 / (1 + depth) for depth in range(LAYERS)]
    layers = [{name: table(WIDTH, n, one) for name, n in PARTS.items()} for one in scales]
    tables = {"embed": table(VOCABULARY, WIDTH), "place": table(CONTEXT, WIDTH)}
    return tables | {"layers": layers, "head": table(WIDTH, VOCABULARY, 0.25)}


def normalised(x):
    """Return rows of mean square 1."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attend(layer, x):
    """Mix each place (T, WIDTH) with the places before."""
    heads = (normalised(x) @ layer["qkv"]).reshape(len(x), HEADS, -1)
    q, k, v = jnp.split(heads, 3, -1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    seen = jnp.tril(jnp.ones(scores.shape[1:], bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ layer["mix"]


def logits(weights, tokens, layers=LAYERS):
    """Return the row (V,) behind each token (T,); later tokens have no effect on it."""
    x = weights["embed"][jnp.maximum(tokens, 0)] + weights["place"][: len(tokens)]
    for layer in weights["layers"][:layers]:
        x = x + attend(layer, x)
        x = x + jax.nn.gelu(normalised(x) @ layer["mlp"])
    return normalised(x) @ weights["head"]


def law(request, rows):
    """Return what is sampled: rows of draft and target go through the same filters."""
    temperature = jnp.broadcast_to(request.temperature, rows.shape[:-1])
    return apply_filters(rows, temperature=temperature)


def uniforms(request, length, max_draft):
    """Return numbers in [0, 1) for the drafts (K,), and for coins and next token (K + 1,).

    A request never has the same length again, so that no number comes twice. The one of
    the next token does not depend on how far the chain is padded.
    """
    key, columns = jax.random.fold_in(request.key, length), STREAMS * jnp.arange(max_draft)
    parts = jnp.concatenate([columns + DRAFTS, columns + COINS, jnp.asarray([NEXT])])
    keys = jax.vmap(partial(jax.random.fold_in, key))(parts)
    numbers = jax.vmap(jax.random.uniform)(keys)
    return numbers[:max_draft], numbers[max_draft:]


def call(weights, max_draft, request, tokens, length):
    """Draft a chain, verify it in one call of the target; return tokens and length."""
    noise, numbers = uniforms(request, length, max_draft)

    def propose(tokens, column):
        end = length + column
        probs = law(request, logits(weights, tokens, layers=1)[end - 1])
        token = draw(probs, noise[column])
        token = jnp.where(column < request.draft_length, token, -1)
        return tokens.at[end].set(token), (token, probs)

    ahead, (drafted, probs) = lax.scan(propose, tokens, jnp.arange(max_draft))
    rows = logits(weights, ahead)[length - 1 + jnp.arange(max_draft + 1)]
    verdict = verify_chain(probs, law(request, rows), drafted, numbers)
    emitted = emitted_tokens(drafted, verdict)
    tokens = lax.dynamic_update_slice_in_dim(tokens, emitted, length, 0)
    return tokens, length + verdict.num_accepted + 1


@partial(jax.jit, static_argnames=("max_draft", "new"))
def decode(weights, requests, max_draft, new):
    """Return `new` tokens behind each prompt, (B, new), and the calls they took, (B,)."""
    start = (requests.prompt >= 0).sum(-1)
    room = ((0, 0), (0, new + max_draft))
    tokens = jnp.pad(requests.prompt, room, constant_values=-1)

    def step(state):
        tokens, length, calls = state
        going = length < start + new
        after = jax.vmap(partial(call, weights, max_draft))(requests, tokens, length)
        tokens = jnp.where(going[:, None], after[0], tokens)
        return tokens, jnp.where(going, after[1], length), calls + going

    begin = tokens, start, jnp.zeros_like(start)
    tokens, _, calls = lax.while_loop(lambda s: jnp.any(s[1] < start + new), step, begin)
    return jnp.take_along_axis(tokens, start[:, None] + jnp.arange(new), 1), calls


def main(new=24):
    """Decode four requests in a batch, and one of them alone."""
    weights = initialise(0)
    prompts = np.asarray([[5, 1, -1, -1], [7, -1, -1, -1], [3, 2, 9, 4], [5, 1, 8, -1]])
    keys = jax.random.split(jax.random.key(7), 4)
    requests = Requests(keys, prompts, np.asarray([4, 2, 3, 4]), np.asarray([0, 0.7, 1, 1]))
    together, calls = map(np.asarray, decode(weights, requests, 4, new))
    for row, (tokens, count) in enumerate(zip(together, calls, strict=True)):
        print(f"request {row}, {new / count:.1f} tokens per call:", *tokens)
    # Without the others there is no padding, neither of the prompt nor of the drafts.
    request = Requests(keys[1:2], prompts[1:2, :1], *(part[1:2] for part in requests[2:]))
    alone, _ = map(np.asarray, decode(weights, request, 2, new))
    print("request 1 alone gets the same:", np.array_equal(alone[0], together[1]))


if __name__ == "__main__":
    main()
