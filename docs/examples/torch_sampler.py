"""A sampler as a serving engine holds it: PyTorch tensors, and a seed for each request.

Uniform numbers are a function of a seed and a counter: no generator has a state that other
requests move on. A request gets the same tokens alone, in a batch, and after a crash. The
sampler never waits for the device, its shapes are fixed and it looks at no value: it
compiles without a break, and `captured` makes a CUDA graph of it. To run it:
``python docs/examples/torch_sampler.py``.
"""

import torch

from draftproof import apply_filters, draw, emitted_tokens, verify_chain

WORD = 0xFFFFFFFF
# Noise that drew a draft must not decide about it: each use has a stream of its own.
DRAFTS, COINS, NEXT, SEEDS = range(4)
NO_FILTER = {"temperature": 1.0, "top_k": 2**31 - 1, "top_p": 1.0, "min_p": 0.0}


def multiply(word, factor):
    """Return the high and the low word of a product, without overflow in int64."""
    # Both factors of Philox exceed 2**31, so that factor - 2**32 has at most 30 bits.
    product = word * (factor - 2**32)
    return (product >> 32) + word, product & WORD


def philox(counter, key):
    """Return the words of Philox4x32-10 (Salmon et al., SC 2011), int64 below 2**32."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        high_a, low_a = multiply(a, 0xD2511F53)
        high_c, low_c = multiply(c, 0xCD9E8D57)
        a, b, c, d = high_c ^ b ^ k, low_c, high_a ^ d ^ m, low_a
        k, m = (k + 0x9E3779B9) & WORD, (m + 0xBB67AE85) & WORD
    return a, b, c, d


def uniforms(seeds, positions, columns, streams):
    """Return float64 numbers in [0, 1), multiples of 2**-53, one for each counter."""
    counter = positions & WORD, columns, streams, (positions >> 32) & WORD
    high, low, _, _ = philox(counter, (seeds & WORD, (seeds >> 32) & WORD))
    return ((high >> 5) * 2**26 + (low >> 6)).double() * 2.0**-53


def request_seeds(seed, numbers):
    """Return a seed of its own for each of the requests that came with one seed."""
    return (uniforms(torch.zeros_like(numbers) + seed, numbers, 0, SEEDS) * 2**53).long()


class SpeculativeSampler:
    """Draft and verify for a batch; row i has the filters that are set for slot i."""

    def __init__(self, requests, draft_length, device="cpu", rule="token"):
        self.rule = rule
        self.columns = torch.arange(draft_length + 1, device=device)
        self.streams = torch.full_like(self.columns, COINS)
        # The last column draws the next token. It is column 0 of its own stream, so that
        # it does not depend on how far the chains are padded.
        self.streams[-1], self.columns[-1] = NEXT, 0
        # Made once and written in place: a CUDA graph reads what they hold at replay.
        self.filters = {
            name: torch.full((len(requests),), number, device=device)
            for name, number in NO_FILTER.items()
        }
        for slot, filters in enumerate(requests):
            self.set_filters(slot, **filters)

    def set_filters(self, slot, **filters):
        """Set what a request asks for, by the names of `apply_filters`."""
        for name, number in filters.items():
            self.filters[name][slot] = number

    def probs(self, logits):
        """Return the laws that are sampled, with the same filters for draft and target."""
        size, rows = logits.shape[:2]
        each = {n: one[:size, None].expand(-1, rows) for n, one in self.filters.items()}
        return apply_filters(logits, **each)

    def propose(self, logits, seeds, positions, column):
        """Draft token `column` of each chain from logits (B, V)."""
        law = self.probs(logits[:, None])[:, 0]
        return draw(law, uniforms(seeds, positions, column, DRAFTS))

    def __call__(self, draft_logits, target_logits, draft_tokens, seeds, positions):
        """Return the emitted tokens (B, K + 1), padded with -1, and how many are accepted.

        Logits are (B, K, V), or None for drafts without a law, and (B, K + 1, V); drafts
        (B, K), padded with -1; seeds (B,); positions (B,), how many tokens each request
        has so far: as it never has as many again, no number comes twice.
        """
        numbers = uniforms(seeds[:, None], positions[:, None], self.columns, self.streams)
        draft_probs = None if draft_logits is None else self.probs(draft_logits)
        rows = draft_probs, self.probs(target_logits), draft_tokens
        verdict = verify_chain(*rows, numbers, rule=self.rule)
        return emitted_tokens(draft_tokens, verdict), verdict.num_accepted


def captured(sampler, *inputs):
    """Return a function that replays the sampler as a CUDA graph; it reuses its result."""
    sampler(*inputs)  # once before: the graph must not hold what is done only once
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = sampler(*inputs)

    def replay(*new):
        for kept, one in zip(inputs, new, strict=True):
            kept.copy_(one)
        graph.replay()
        return outputs

    return replay


def decode(sampler, draft, target, seeds, calls):
    """Decode after token 0; models are tables of logits, row i for what follows token i."""
    positions, last, emitted, verify = torch.zeros_like(seeds), seeds * 0, [], sampler
    for _ in range(calls):
        path = last[:, None]
        for column in range(len(sampler.columns) - 1):
            token = sampler.propose(draft[path[:, -1]], seeds, positions, column)
            path = torch.cat([path, token[:, None]], -1)
        inputs = draft[path[:, :-1]], target[path], path[:, 1:], seeds, positions
        if seeds.is_cuda and verify is sampler:
            verify = captured(sampler, *map(torch.clone, inputs))
        tokens, accepted = verify(*inputs)
        emitted.append(tokens.clone())
        last = tokens.gather(1, accepted[:, None])[:, 0]
        positions = positions + accepted + 1
    return torch.cat(emitted, -1)


def main(calls=10):
    """Decode three requests of one user in a batch, and each of them alone."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    noise = torch.randn(2, 50, 50, generator=torch.Generator().manual_seed(0)).to(device)
    models = 3 * noise[0] + noise[1], 3 * noise[0]
    requests = [{"temperature": 0}, {"temperature": 0.7, "top_k": 9}, {"top_p": 0.9}]
    seeds = request_seeds(7, torch.arange(len(requests), device=device))
    together = decode(SpeculativeSampler(requests, 4, device), *models, seeds, calls)
    for slot, (filters, tokens) in enumerate(zip(requests, together, strict=True)):
        sampler = SpeculativeSampler([filters], 4, device)
        same = torch.equal(decode(sampler, *models, seeds[[slot]], calls)[0], tokens)
        text = tokens[tokens >= 0].tolist()
        print(f"{filters}: {len(text) / calls:.1f} tokens per call, same alone: {same}")
        print("   ", *text)


if __name__ == "__main__":
    main()
