"""The pictures of the pages, drawn by the build from the package's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from draftproof import accept_residual

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
        draw_masses(folder / f"masses-{theme}.svg", ink, faint)


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
    figure.tight_layout(rect=(0, 0.09, 1, 1))
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
