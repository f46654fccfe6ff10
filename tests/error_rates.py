"""How often the kit's verdicts are wrong: tables in Markdown, measured.

First the statistic alone: counts drawn from the exact laws, 100,000 times each, against
the stated rates; at the rates that are really used by importance sampling; and counts
drawn from laws of wrong rules, for the power. Then whole checks, quick, of right and of
wrong subjects. Run by ``nox -s error_rates``; about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import chi2

from draftproof.conformance import broken
from draftproof.conformance._draft import check_draft
from draftproof.conformance._models import MODELS
from draftproof.conformance._plan import BATCH, Plan
from draftproof.conformance._sampler import check_sampler
from draftproof.conformance._statistics import sample_size
from draftproof.conformance._wrong import WRONG

RATES = (1e-2, 1e-3, 1e-4)
FAR = (1e-6, 1e-7)
POWER = 0.999


def statistics(counts, law):
    """Return the statistic of many counts, whose cells are all thick."""
    return 2 * xlogy(counts, counts / (counts.sum(1, keepdims=True) * law)).sum(1)


def dense(law, size):
    """Return a law of sequences as an array in the order of another's keys."""
    found = np.asarray([float(law.get(tokens, 0)) for tokens in size])
    return found / found.sum()


def false_alarms(rng, runs):
    """Print how often counts of the law itself are rejected."""
    print("## Counts of the law itself\n")
    print("Rejected, in units of the stated rate; 1 is right.\n")
    print("| model | requests |", " | ".join(f"{rate:g}" for rate in (*RATES, *FAR)), "|")
    print("|---|---|" + "---|" * len(RATES + FAR))
    for model in MODELS.values():
        law = np.asarray([float(prob) for prob in model.target_law().values()])
        for size in (BATCH, 3 * BATCH, 20 * BATCH):
            seen = statistics(rng.multinomial(size, law, runs), law)
            cells = []
            for rate in RATES:
                hits = (seen > chi2.isf(rate, len(law) - 1)).sum()
                cells.append(
                    f"{hits / runs / rate:.2f} ± {(max(hits, 1)) ** 0.5 / runs / rate:.2f}"
                )
            cells += [far_out(rng, law, size, rate, runs) for rate in FAR]
            print(f"| {model.name} | {size:,} |", " | ".join(cells), "|")
    print()


def far_out(rng, law, size, rate, runs):
    """Return the rate far out in units of the stated one, by importance sampling.

    Draws are from a mixture of laws around the right one, whose weights are exact: those
    of a Dirichlet-multinomial law, spread so that the statistic comes to the boundary.
    """
    limit = chi2.isf(rate, len(law) - 1)
    spread = size / (limit / (len(law) - 1) - 1)
    drawn = rng.multinomial(size, rng.dirichlet(spread * law, runs))
    mixed = gammaln(spread) - gammaln(spread + size)
    mixed += (gammaln(spread * law + drawn) - gammaln(spread * law)).sum(1)
    weights = np.exp(xlogy(drawn, law).sum(1) - mixed) * (statistics(drawn, law) > limit)
    return f"{weights.mean() / rate:.2f} ± {weights.std() / runs**0.5 / rate:.2f}"


def power(rng, runs):
    """Print how often laws at the stated distance, and wrong rules, are not rejected."""
    plan = Plan(
        rule=None,
        one_hot=False,
        ragged=True,
        drafter=False,
        detect=0.03,
        false_alarm=1e-6,
        power=POWER,
    )
    print("## Counts of other laws, as many as a quick check draws\n")
    print(
        f"Not rejected, of {runs:,} (so give or take {(0.001 / runs) ** 0.5:.2%}); at "
        f"the stated total variation of 0.03 at most "
        f"{1 - POWER:.1%} are to be.\n"
    )
    print("| law | missed | on model | total variation |")
    print("|---|---|---|---|")
    for model in MODELS.values():
        keys = list(model.target_law())
        law = dense(model.target_law(), keys)
        needed = sample_size(len(law) - 1, 0.03, false_alarm=plan.each, power=POWER)
        # The hardest law at this distance: chances move in proportion to themselves.
        half = np.argsort(law).cumsum() < 0
        half[np.argsort(law)[::2]] = True
        off = law.copy()
        off[half] *= 1 + 0.03 / law[half].sum()
        off[~half] *= 1 - 0.03 / law[~half].sum()
        missed = miss(rng, law, off, needed, plan.each, runs)
        print(f"| 0.03 away, {needed:,} requests | {missed:.3%} | {model.name} | 0.030 |")
    for rule in WRONG.values():
        worst = (0.0, "", 1.0)
        for case in plan.cases:
            keys = list(case.model.target_law())
            joint = rule.joint_law(case.model)
            law, other = dense(case.model.target_law(), keys), dense(joint, keys)
            away = float(np.abs(law - other).sum() / 2)
            if set(joint) - set(keys):
                away = 1.0
            if away > worst[0]:
                size = plan.batches(case) * BATCH
                missed = 0.0
                if away < 1:
                    missed = miss(rng, law, other, size, plan.each, min(runs, 2000))
                worst = (away, case.model.name, missed)
        away = "a token that cannot come" if worst[0] == 1 else f"{worst[0]:.3f}"
        print(f"| {rule.name} | {worst[2]:.3%} | {worst[1]} | {away} |")
    print()


def miss(rng, law, off, size, rate, runs):
    """Return how often counts of a law that is off are not rejected."""
    seen = statistics(rng.multinomial(size, off, runs), law)
    return float((seen <= chi2.isf(rate, len(law) - 1)).mean())


def whole(check, subjects, runs, *, right):
    """Print the verdicts of whole quick checks, and the names that faults were given."""
    wrong = 0
    for name, subject in subjects.items():
        options = {} if check is check_draft else {"rule": subject.rule}
        start = time.perf_counter()
        reports = [
            check(subject.subject, quick=True, seed=i, **options) for i in range(runs)
        ]
        rejected = sum(not report.conforms for report in reports)
        named = sum(report.fault == subject.fault for report in reports)
        took = (time.perf_counter() - start) / runs
        # What is a convention to the kit is noted in the report, and not rejected.
        passes = right or subject.noted is not None
        wrong += rejected if passes else runs - rejected
        row = f"| {name} | {rejected} | {named} | {runs} | {took:.1f} |"
        print(row, flush=True)
    return wrong


def checks(right_runs, wrong_runs):
    """Print what whole checks say of right and of wrong subjects; return how many err."""
    print("## Whole checks, quick\n")
    print("| subject | rejected | named as stated | of | seconds |")
    print("|---|---|---|---|---|")
    wrong = 0
    for check, right, faulty in (
        (check_sampler, broken.RIGHT_SAMPLERS, broken.SAMPLERS),
        (check_draft, broken.RIGHT_DRAFTERS, broken.DRAFTERS),
    ):
        each = -(-right_runs // (2 * len(right)))
        wrong += whole(check, right, each, right=True)
        wrong += whole(check, faulty, wrong_runs, right=False)
    print(f"\nWrong verdicts: {wrong}.")
    return wrong


def main():
    """Measure, and fail if a verdict of a whole check is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="of the statistic")
    parser.add_argument("--right", type=int, default=100, help="checks of right subjects")
    parser.add_argument("--wrong", type=int, default=3, help="checks of each wrong one")
    options = parser.parse_args()
    rng = np.random.default_rng(2026)
    false_alarms(rng, options.runs)
    power(rng, options.runs)
    return 1 if checks(options.right, options.wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
