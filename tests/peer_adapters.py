"""Samplers of other projects behind the protocols of the conformance kit.

Each function loads one of theirs from the installed package and returns an adapter. Of
engines that need a GPU or a server, single modules are loaded from their files, with
stand-ins for what these import and the sampler does not call.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
import torch

from draftproof.conformance import from_verdict, one_at_a_time


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import some modules of a package from their files, and a mock for every other."""

    def __init__(self, package: str, own: tuple[str, ...]) -> None:
        self.package = package
        (self.folder,) = importlib.util.find_spec(package).submodule_search_locations
        self.own = {f"{package}.{name}" for name in own}

    def find_spec(self, name, path, target=None):
        """Find a module in its file, or let it be a stand-in."""
        top, *rest = name.split(".")
        if top != self.package:
            return None
        if name not in self.own:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        file = Path(self.folder, *rest).with_suffix(".py")
        if not file.exists():
            file = Path(self.folder, *rest, "__init__.py")
        return importlib.util.spec_from_file_location(name, file)

    def create_module(self, spec):
        """Make a module that has whatever is asked of it."""
        module = ModuleType(spec.name)
        module.__getattr__ = lambda name: mock.MagicMock(name=name)
        return module

    def exec_module(self, module):
        """Leave it as it is."""


@contextmanager
def only(package: str, *own: str):
    """Make these modules of a package importable, without what they do not need."""
    finder = StandIns(package, own)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]


def single(array):
    """Turn an array of NumPy into one of PyTorch; floats are float32, as engines have."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.float() if tensor.is_floating_point() else tensor


def drawn(rows):
    """Draw a token from each row: the bonus token, where the caller has to bring it."""
    return torch.multinomial(rows, 1)


def transformers():
    """Return ``_speculative_sampling``, which takes logits of one request."""
    from transformers.generation.utils import _speculative_sampling

    def decide(draft, target, tokens, seed):
        torch.manual_seed(seed)
        new, _ = _speculative_sampling(
            tokens[None], draft.log()[None], len(tokens), target.log()[None]
        )
        return new[0]

    return one_at_a_time(decide)


def sequential(module, step):
    """Return a step of seqspecdecod, which calls two models and drafts by itself.

    The models give the logarithms of the rows; the first draws give the drafts.
    """
    module = importlib.import_module(f"seqspecdecod.{module}")
    draw = module.sample_from_probs

    def model(rows):
        logits = rows.log()[None]
        return lambda ids: SimpleNamespace(logits=logits[:, : ids.shape[1]])

    def decide(draft, target, tokens, seed):
        torch.manual_seed(seed)
        drafts = list(tokens)

        def replaced(probs):
            return drafts.pop(0) if drafts else draw(probs)

        with mock.patch.object(module, "sample_from_probs", replaced):
            prompt = torch.zeros((1, 1), dtype=torch.long)
            models = model(draft), model(target)
            new, _, _ = getattr(module, step)(*models, prompt, len(tokens), 1.0, 1.0)
        return new[0, 1:]

    return one_at_a_time(decide)


def flashspec():
    """Return ``rejection_step``, which takes logarithms of probabilities."""
    from flashspec.sampling.rejection import rejection_step, rejection_step_onehot

    def sampler(draft_probs, target_probs, draft_tokens, seed):
        noise = torch.Generator().manual_seed(seed)
        target, tokens = target_probs.log(), draft_tokens.long()
        if draft_probs is None:
            count = (tokens >= 0).sum(1)
            tokens = tokens.clamp(min=0)
            found = rejection_step_onehot(tokens, target, count, generator=noise)
        else:
            found = rejection_step(tokens, draft_probs.log(), target, generator=noise)
        return found.T

    return from_verdict(sampler)


def economize():
    """Return ``RejectionVerifier.verify_batch``, which takes logits."""
    from economize.decoding.config import DecodeConfig
    from economize.decoding.protocols import Draft
    from economize.decoding.selectors import TopPSampler
    from economize.decoding.verifiers import RejectionVerifier

    verifier = RejectionVerifier(DecodeConfig(verifier="rejection"))

    def sampler(draft_probs, target_probs, draft_tokens, seed):
        lengths = (draft_tokens >= 0).sum(1).tolist()
        draft = Draft(draft_tokens.long(), lengths, probs=draft_probs)
        rows = target_probs.log(), draft, TopPSampler(seed=seed), None, None
        return verifier.verify_batch(*rows)

    return from_verdict(sampler)


def sglang_blockwise():
    """Return SGLang's ``blockwise_rejection_torch``, which takes logits."""
    name = "kernels.ops.speculative.dspark.blockwise_rejection"
    with only("sglang", name):
        module = importlib.import_module(f"sglang.{name}")

    def sampler(draft_probs, target_probs, draft_tokens, seed):
        ones = torch.ones(len(draft_tokens))
        padded = torch.nn.functional.pad(draft_tokens.long(), (1, 0))
        accepted, following, _ = module.blockwise_rejection_torch(
            candidates=padded,
            target_logits=target_probs.log().flatten(0, 1),
            draft_logits=None if draft_probs is None else draft_probs.log(),
            target_temperatures=ones,
            draft_temperatures=ones,
            noise=module.make_rejection_noise(seed, "cpu"),
        )
        return accepted, following

    return from_verdict(sampler)


def sglang_chain(*, block=False):
    """Return SGLang's kernel for chains as a verifier: its uniforms are arguments."""
    name = "kernels.ops.speculative.reject_sampling"
    with only("sglang", name):
        module = importlib.import_module(f"sglang.{name}")

    def verifier(draft_probs, target_probs, draft_tokens, uniforms):
        count, slots = uniforms.shape
        index = torch.arange(count * slots).reshape(count, slots)
        predicted = torch.full((count * slots,), -1)
        accepted = torch.full((count,), -1, dtype=torch.int32)
        module.chain_speculative_sampling_triton(
            predicted,
            torch.full_like(index, -1),
            accepted,
            torch.nn.functional.pad(draft_tokens.long(), (1, 0)),
            index,
            None,
            None,
            uniforms[:, :-1].contiguous(),
            uniforms[:, -1].contiguous(),
            target_probs,
            draft_probs,
            1.0,
            1.0,
            deterministic=True,
            block_verification=block,
        )
        return accepted, predicted[index[:, 0] + accepted]

    return verifier


def tpu_inference():
    """Return tpu-inference's ``rejection_sample``, flat; the caller draws the bonus."""
    import jax

    name = "layers.jax.sample.rejection_sampler"
    with only("tpu_inference", name):
        module = importlib.import_module(f"tpu_inference.{name}")
    decide = jax.jit(module.rejection_sample, static_argnames="do_sampling")

    def sampler(draft_probs, target_probs, draft_tokens, seed):
        count, length = draft_tokens.shape
        ours, theirs = jax.random.split(jax.random.key(seed))
        bonus = jax.random.categorical(ours, jax.numpy.log(target_probs[:, -1]))
        tokens = decide(
            draft_tokens.reshape(-1),
            jax.numpy.full(count, length),
            None if draft_probs is None else draft_probs.reshape(count * length, -1),
            target_probs[:, :-1].reshape(count * length, -1),
            bonus,
            do_sampling=True,
            key=theirs,
        )
        main, bonus = tokens[:-count].reshape(count, length), tokens[-count:]
        return jax.numpy.concatenate([main, bonus[:, None]], axis=1)

    return sampler


def vllm():
    """Return vLLM's ``rejection_sample`` of V1, flat; the caller draws the bonus."""
    name = "v1.sample.rejection_sampler"
    launching = "triton_utils", "model_executor.warmup.jit_warmup"
    with only("vllm", name, *launching, f"{launching[1]}_triton_helper"):
        module = importlib.import_module(f"vllm.{name}")

    def sampler(draft_probs, target_probs, draft_tokens, seed):
        torch.manual_seed(seed)
        count, length = draft_tokens.shape
        bonus = drawn(target_probs[:, -1])
        settings = SimpleNamespace(
            all_greedy=False,
            all_random=True,
            temperature=torch.ones(count),
            generators={},
        )
        return module.rejection_sample(
            draft_tokens.flatten().int(),
            [length] * count,
            length,
            torch.arange(1, count + 1, dtype=torch.int32) * length,
            None if draft_probs is None else draft_probs.flatten(0, 1).contiguous(),
            target_probs[:, :-1].log().flatten(0, 1),
            bonus,
            settings,
        )

    return sampler
