"""What only a GPU can show, in one command: ``python tests/gpu.py``.

Runs the tests of the GPU backends, then those of this file. Ends with 5, as pytest
does when no test ran, where there is no GPU.
"""

from __future__ import annotations

import sys

import pytest
import torch

from draftproof import accept_residual, speculative_decode_step

HERE = __file__.rpartition("/")[0] or "."
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def rows(batch, size, dtype=torch.float32):
    """Make two rows of laws and tokens on the GPU."""
    torch.manual_seed(0)
    draft, target = (
        torch.softmax(torch.randn(batch, size, device="cuda"), -1).to(dtype) for _ in "qp"
    )
    return draft, target, torch.randint(size, (batch,), device="cuda")


@needs_cuda
def test_accept_residual_makes_no_synchronisation():
    """PyTorch, told to raise at any synchronisation, has none to raise at."""
    arguments = rows(8, 1_000)
    accept_residual(*arguments)
    torch.cuda.set_sync_debug_mode("error")
    try:
        accept_residual(*arguments)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_cuda
def test_accept_residual_is_captured_in_a_cuda_graph():
    """Captured once, replayed on new rows: the same bits as the call itself."""
    static = rows(8, 1_000)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        accept_residual(*static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = accept_residual(*static)
    fresh = rows(8, 1_000)
    for held, new in zip(static, fresh, strict=True):
        held.copy_(new.flip(0))
    graph.replay()
    expected = accept_residual(*(new.flip(0) for new in fresh))
    for one, other in zip(captured, expected, strict=True):
        assert torch.equal(one, other)


@needs_cuda
@pytest.mark.parametrize("on_device", [False, True])
def test_the_step_synchronises_once(on_device, recwarn):
    """One synchronisation per call, and one more if the token is on the device."""
    draft, target, tokens = rows(1, 1_000)
    token = tokens[0] if on_device else int(tokens[0])
    speculative_decode_step(draft[0], target[0], token)
    recwarn.clear()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        speculative_decode_step(draft[0], target[0], token)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(recwarn) == 1 + on_device


if __name__ == "__main__":
    # In one process: two would share one GPU, and need one more package.
    alone = ["--override-ini=addopts=--import-mode=importlib", "-ra"]
    sys.exit(pytest.main([HERE, __file__, *alone, "-k", "cuda or cupy", *sys.argv[1:]]))
