"""What traces: one row of a table for each public function of arrays."""

from __future__ import annotations

import functools
import logging
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import draftproof
from backends import Backend
from draftproof import accept_residual, verify_chain

ROWS = np.asarray([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
TARGETS = np.asarray([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]])
TOKENS = np.asarray([0, -1])

CHAIN = np.asarray([[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]] * 2)
CHAIN_TARGETS = np.asarray([[[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]] * 2)
CHAIN_TOKENS = np.asarray([[0, 1], [1, -1]])
UNIFORMS = np.asarray([[0.25, 0.75, 0.5], [0.875, 0.125, 0.25]])

block_chain = functools.partial(draftproof.verify_chain, rule="block")
block_law = functools.partial(draftproof.accepted_law, rule="block")


def token_chain(draft_probs, target_probs, draft_tokens, uniforms):
    """Verify without the option, which make_fx takes for a fifth array."""
    return draftproof.verify_chain(draft_probs, target_probs, draft_tokens, uniforms)


def one_hot_chain(target_probs, draft_tokens, uniforms):
    """Verify drafts that have no law."""
    return draftproof.verify_chain(None, target_probs, draft_tokens, uniforms)


def one_hot_block(target_probs, draft_tokens, uniforms):
    """Verify drafts that have no law by the block rule."""
    return block_chain(None, target_probs, draft_tokens, uniforms)


def emitted(draft_tokens, target_tokens):
    """Match and emit, so that a verdict goes from one function to the other."""
    verdict = draftproof.match_tokens(draft_tokens, target_tokens)
    return (draftproof.emitted_tokens(draft_tokens, verdict),)


def expected(rates):
    """Take a static length, as is natural."""
    return (draftproof.expected_tokens(rates, 3),)


def filtered(logits, temperature, top_k, top_p):
    """Filter with a number of each request, and one for all."""
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    return (draftproof.apply_filters(logits, min_p=0.1, **options),)


# Functions that trace, with arguments; every other public function must be in EAGER.
TRACED = {
    "accept_residual": (accept_residual, (ROWS, TARGETS, TOKENS)),
    "draw": (lambda *a: (draftproof.draw(*a),), (ROWS, UNIFORMS[:, 0])),
    "verify_chain": (
        token_chain,
        (CHAIN, CHAIN_TARGETS, CHAIN_TOKENS, UNIFORMS),
    ),
    "verify_chain block": (block_chain, (CHAIN, CHAIN_TARGETS, CHAIN_TOKENS, UNIFORMS)),
    "verify_chain one-hot": (one_hot_chain, (CHAIN_TARGETS, CHAIN_TOKENS, UNIFORMS)),
    "verify_chain one-hot block": (one_hot_block, (CHAIN_TARGETS, CHAIN_TOKENS, UNIFORMS)),
    "match_tokens": (draftproof.match_tokens, (CHAIN_TOKENS, np.asarray([[0, 1, 2]] * 2))),
    "emitted_tokens": (emitted, (CHAIN_TOKENS, np.asarray([[0, 2, 1]] * 2))),
    "acceptance_rate": (lambda *a: (draftproof.acceptance_rate(*a),), (ROWS, TARGETS)),
    "accepted_law": (
        lambda *a: (draftproof.accepted_law(*a),),
        (CHAIN, CHAIN_TARGETS, CHAIN_TOKENS),
    ),
    "accepted_law block": (
        lambda *a: (block_law(*a),),
        (CHAIN, CHAIN_TARGETS, CHAIN_TOKENS),
    ),
    "expected_tokens": (expected, (UNIFORMS[:, 0],)),
    "apply_filters": (filtered, (ROWS, UNIFORMS[:, 0], TOKENS + 2, UNIFORMS[:, 1])),
}
EAGER = {"speculative_decode_step", "check_probs"}
TYPES = {"AcceptResidual", "DecodeStep", "Verdict"}

every_function = pytest.mark.parametrize("name", TRACED)


def test_the_table_is_complete():
    """Nobody can add a public name and forget to say whether it traces."""
    traced = {name.split()[0] for name in TRACED}
    assert traced | EAGER | TYPES == set(draftproof.__all__)


def jax_arguments(name):
    """Return the function and its arguments as JAX arrays."""
    function, arguments = TRACED[name]
    return function, [
        jnp.asarray(a, jnp.float32 if a.dtype.kind == "f" else jnp.int32) for a in arguments
    ]


def torch_arguments(name, **options):
    """Return the function and its arguments as PyTorch tensors."""
    function, arguments = TRACED[name]
    return function, [torch.as_tensor(a).to(**options) for a in arguments]


def in_dtype(name, arguments, dtype):
    """Return the arguments with the rows, not the uniforms, in another dtype."""
    rows = [a is ROWS or a is TARGETS or a.ndim == 3 for a in TRACED[name][1]]
    return [a.to(dtype) if row else a for a, row in zip(arguments, rows, strict=True)]


def assert_same(actual, expected):
    """Assert two results are equal to the last few bits; jit may divide differently."""
    assert type(actual) is type(expected)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=3e-7)


@every_function
def test_jax_make_jaxpr(name):
    """It traces with abstract values: no bool(), no float(), no index of a value."""
    with Backend.JAX.context():
        function, arguments = jax_arguments(name)
        jax.make_jaxpr(function)(*arguments)


@every_function
def test_jax_jit_and_vmap(name):
    """A jit of vmap gives what the eager call gives, which is itself compiled."""
    with Backend.JAX.context():
        function, arguments = jax_arguments(name)
        expected = function(*arguments)
        assert_same(jax.jit(jax.vmap(function))(*arguments), expected)


@every_function
def test_jax_traces_once_per_shape(name, caplog):
    """Eager calls of one shape share one compilation."""
    with Backend.JAX.context():
        function, arguments = jax_arguments(name)
        function(*arguments)
        with jax.log_compiles(), caplog.at_level(logging.WARNING):
            function(*arguments)
        assert not [one for one in caplog.records if "Compiling" in one.getMessage()]


def test_jax_compilations_are_seen(caplog):
    """The negative control: another shape does compile, and the log says so."""
    with Backend.JAX.context(), jax.log_compiles(), caplog.at_level(logging.WARNING):
        accept_residual(jnp.ones((1, 61)), jnp.ones((1, 61)), jnp.zeros(1, jnp.int32))
    assert [one for one in caplog.records if "Compiling" in one.getMessage()]


@every_function
def test_torch_compile_without_graph_break_or_warning(name):
    """Dynamo takes the whole function, for several batch sizes, and does not warn."""
    torch._dynamo.reset()
    function, arguments = torch_arguments(name)
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    assert_same(compiled(*arguments), function(*arguments))
    for count in (3, 33):
        wider = [a[:1].expand(count, *a.shape[1:]).clone() for a in arguments]
        assert_same(compiled(*wider), function(*wider))
    half = in_dtype(name, arguments, torch.float16)
    assert_same(compiled(*half), function(*half))


@pytest.mark.skipif(not shutil.which("g++"), reason="PyTorch compiles with g++")
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")
@pytest.mark.parametrize("rule", ["token", "block"])
def test_torch_compiles_to_code_for_any_shape(rule):
    """PyTorch builds what it makes of changing numbers of requests and drafts."""
    torch._dynamo.reset()
    compiled = torch.compile(functools.partial(verify_chain, rule=rule), fullgraph=True)
    random = np.random.default_rng(0)
    for count, length in ((1, 5), (32, 4), (8, 4)):
        draft, target = (
            random.random((count, rows, 1500), dtype=np.float32)
            for rows in (length, length + 1)
        )
        tokens = random.integers(-1, 1500, (count, length))
        arrays = (draft, target, tokens, random.random((count, length + 1)))
        arrays = tuple(map(torch.from_numpy, arrays))
        assert_same(compiled(*arrays), verify_chain(*arrays, rule=rule))


@every_function
def test_torch_compile_before_any_eager_call(name):
    """The first call of a process may be a compiled one: nothing has to be warmed up."""
    import draftproof._namespace as namespace

    found = namespace._LIBRARIES.pop(torch.Tensor, None)
    torch._dynamo.reset()
    function, arguments = torch_arguments(name)
    try:
        torch.compile(function, fullgraph=True, backend="eager")(*arguments)
    finally:
        if found is not None:
            namespace._LIBRARIES[torch.Tensor] = found


@every_function
def test_torch_vmap(name):
    """torch.vmap gives what the batched call gives."""
    function, arguments = torch_arguments(name)
    assert_same(torch.vmap(function)(*arguments), function(*arguments))


@every_function
@pytest.mark.parametrize("dtype", Backend.TORCH_META.dtypes)
def test_torch_meta_device(name, dtype):
    """Without any values the shapes, dtypes and devices are those of the real call."""
    function, arguments = torch_arguments(name)
    arguments = in_dtype(name, arguments, getattr(torch, dtype))
    expected = function(*arguments)
    found = function(*(a.to("meta") for a in arguments))
    for one, other in zip(found, expected, strict=True):
        assert one.is_meta
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


@every_function
def test_torch_export_by_make_fx(name):
    """The function can be recorded operation by operation."""
    from torch.fx.experimental.proxy_tensor import make_fx

    function, arguments = torch_arguments(name)
    graph = make_fx(function)(*arguments)
    for one, other in zip(graph(*arguments), function(*arguments), strict=True):
        assert torch.equal(one, other)


def test_jax_scan_body():
    """It may stand in the body of a loop that JAX compiles."""
    with Backend.JAX.context():
        _, (draft, target, tokens) = jax_arguments("accept_residual")

        def body(carry, row):
            return carry, accept_residual(*row)

        _, scanned = jax.lax.scan(body, None, (draft, target, tokens))
        assert_same(scanned, accept_residual(draft, target, tokens))
