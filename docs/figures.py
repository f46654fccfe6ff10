"""The pictures of the pages, drawn by the build from the package's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from draftproof import accept_residual, acceptance_rate, exact, expected_tokens

if TYPE_CHECKING:
    from pathlib import Path

mpl.use("Agg")
# A text of the pictures stays text, so that it can be read out and searched.
plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "draftproof", "font.size": 11})

# Ink and faint ink of furo's light and dark pages; the colours read on both.
THEMES = {"light": ("#1a1a1a", "#8a8a8a"), "dark": ("#e6e6e6", "#9a9a9a")}
KEPT, REPLACED = "#2a9d5c", "#c2509e"

DRAFT = np.asarray([0.30, 0.30, 0.15, 0.15, 0.08, 0.02])
TARGET = np.asarray([0.10, 0.25, 0.15, 0.25, 0.10, 0.15])


def draw_all(folder: Path) -> None:
    """Draw every picture for light and for dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for theme, (ink, faint) in THEMES.items():
        for draw in (draw_masses, draw_overlap, draw_lengths, draw_wrong):
            name = draw.__name__.removeprefix("draw_")
            draw(folder / f"{name}-{theme}.svg", ink, faint)


def draw_masses(path: Path, ink: str, faint: str) -> None:
    """Draw how accepted mass and the residual's mass make up the target law."""
    size = DRAFT.size
    rows = (np.broadcast_to(row, (size, size)) for row in (DRAFT, TARGET))
    accept_prob, residuals = accept_residual(*rows, np.arange(size))
    kept = DRAFT * accept_prob
    rejected = 1 - kept.sum()
    replaced = rejected * residuals[0]

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
    tokens = np.arange(size)
    left.bar(tokens, kept, color=KEPT, width=0.8)
    left.bar(
        tokens,
        DRAFT - kept,
        bottom=kept,
        color="none",
        edgecolor=ink,
        hatch="///",
        width=0.8,
    )
    left.set_title(f"what the draft proposes: {rejected:.2f} of it is rejected")
    right.bar(tokens, kept, color=KEPT, width=0.8)
    right.bar(
        tokens, replaced, bottom=kept, color=REPLACED, hatch="...", edgecolor=ink, width=0.8
    )
    right.set_title(f"what is emitted: {rejected:.2f} of it from the residual")
    for axes in (left, right):
        axes.hlines(TARGET, tokens - 0.45, tokens + 0.45, color=ink, linewidth=2.5)
        style(axes, ink, faint)
    handles = [
        plt.Rectangle((0, 0), 1, 1, facecolor=KEPT),
        plt.Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=ink, hatch="///"),
        plt.Rectangle((0, 0), 1, 1, facecolor=REPLACED, edgecolor=ink, hatch="..."),
        Line2D([], [], color=ink, linewidth=2.5),
    ]
    labels = ["kept, min(p, q)", "rejected", "replaced, max(p - q, 0)", "target p"]
    figure.legend(
        handles, labels, loc="lower center", ncols=4, frameon=False, labelcolor=ink
    )
    save(figure, path, bottom=0.09)


def draw_overlap(path: Path, ink: str, faint: str) -> None:
    """Draw the acceptance of random pairs of laws against their total variation."""
    random = np.random.default_rng(0)
    sharpness = random.uniform(0.2, 4, size=(2, 300, 1))
    draft, target = random.dirichlet(np.ones(20), size=(2, 300)) ** sharpness
    draft, target = (law / law.sum(-1, keepdims=True) for law in (draft, target))
    distance = np.abs(draft - target).sum(-1) / 2
    figure, axes = plt.subplots(figsize=(5.2, 3.4))
    axes.plot([0, 1], [1, 0], color=faint, linewidth=1)
    axes.scatter(distance, acceptance_rate(draft, target), s=9, color=KEPT)
    style(axes, ink, faint)
    axes.set_xlabel("total variation between draft and target law", color=ink)
    axes.set_ylabel("drafts accepted", color=ink)
    save(figure, path)


def draw_lengths(path: Path, ink: str, faint: str) -> None:
    """Draw tokens per call of the target against the number of drafts."""
    lengths = range(1, 9)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4))
    for rate, mark in ((0.5, "o"), (0.7, "s"), (0.9, "^")):
        tokens = [float(expected_tokens(np.asarray(rate), k)) for k in lengths]
        left.plot(lengths, tokens, color=KEPT, marker=mark, markersize=5)
        left.annotate(f"{rate:.0%} accepted", (8, tokens[-1]), (-4, 5), **LABEL, color=ink)
    left.set_title("token rule, by acceptance of a draft")
    models = (lambda _: ("2/3", "1/3")), (lambda _: ("1/3", "2/3"))
    for rule, colour, shift in (("token", KEPT, -14), ("block", REPLACED, 6)):
        tokens = [
            1 + float(exact.expected_accepted(*models, k, rule=rule)) for k in lengths
        ]
        right.plot(lengths, tokens, color=colour, marker="o", markersize=5)
        right.annotate(f"{rule} rule", (8, tokens[-1]), (-4, shift), **LABEL, color=ink)
    right.set_title("both rules, draft (2/3, 1/3), target (1/3, 2/3)")
    for axes in (left, right):
        style(axes, ink, faint)
        axes.set_xlabel("drafts K", color=ink)
        axes.set_ylabel("tokens per call", color=ink)
        axes.margins(y=0.15)
    save(figure, path)


def draw_wrong(path: Path, ink: str, faint: str) -> None:
    """Draw the law of a sampler that replaces from the target, beside the right one."""
    kept = np.minimum(DRAFT, TARGET)
    rejected = 1 - kept.sum()
    figure, axes = plt.subplots(figsize=(5.6, 3.4))
    tokens = np.arange(DRAFT.size)
    axes.bar(tokens, kept, color=KEPT, width=0.8, label="kept")
    axes.bar(
        tokens,
        rejected * TARGET,
        bottom=kept,
        color="none",
        edgecolor=ink,
        hatch="///",
        width=0.8,
        label="replaced from p: too much where the draft had too much",
    )
    axes.hlines(TARGET, tokens - 0.45, tokens + 0.45, color=ink, linewidth=2.5)
    axes.plot([], [], color=ink, linewidth=2.5, label="target p")
    style(axes, ink, faint)
    figure.legend(loc="lower center", frameon=False, labelcolor=ink, fontsize=9)
    save(figure, path, bottom=0.24)


LABEL = {"textcoords": "offset points", "ha": "right", "fontsize": 9}


def save(figure: plt.Figure, path: Path, bottom: float = 0) -> None:
    """Lay a figure out and write it, the same bytes each time."""
    figure.tight_layout(rect=(0, bottom, 1, 1))
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def style(axes: plt.Axes, ink: str, faint: str) -> None:
    """Give axes the ink of the page, and no more lines than they need."""
    axes.set_xlabel("token", color=ink)
    axes.tick_params(colors=ink)
    axes.title.set_color(ink)
    axes.title.set_fontsize(11)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(faint)
