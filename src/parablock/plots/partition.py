"""How good a partition is."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.devices import DEVICES
from parablock.partition import Partition
from parablock.plots.style import BLUE, GRID, INK, dress, level, need_matplotlib, panels

_SAMPLED_ROWS = 2048  # whose kernel values are looked at


class PartitionDisplay:
    """The sizes of the blocks, and how much of the kernel's squared mass is inside them.

    The more of it lies inside, the less the blocks get into each other's way, and the fewer iterations are needed.

    Parameters
    ----------
    partition : Partition
        As in ``partition_``.
    between : ndarray of shape (n_blocks, n_blocks), optional
        The share of each block's (row's) mass that it has with each block (column).

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes
        Sizes; mass.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from parablock import KernelSVC
    >>> from parablock.datasets import load_covtype_sample
    >>> from parablock.plots import PartitionDisplay
    >>> X, y, _, _ = load_covtype_sample()
    >>> model = KernelSVC(C=32, gamma=32, n_blocks=8, random_state=0).fit(X[:1000], y[:1000])
    >>> display = PartitionDisplay.from_estimator(model, X[:1000])
    >>> display.between.shape
    (8, 8)
    """

    def __init__(self, partition: Partition, *, between: np.ndarray | None = None) -> None:
        self.partition, self.between = partition, between

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> PartitionDisplay:
        """Draw the first blocks of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
        X : array or sparse matrix, optional
            The training data, which a model does not keep. With it the picture shows which blocks share mass, estimated
            from a sample of the rows.
        ax : two matplotlib Axes, optional
            A new figure by default.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "partition_")
        between = None if X is None else _mass_between(estimator, X)
        return cls(estimator.partition_, between=between).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> PartitionDisplay:
        """Draw.

        Parameters
        ----------
        ax : two matplotlib Axes, optional
            A new figure by default.
        """
        need_matplotlib(type(self).__name__)
        self.figure_, axes = panels(ax, 1, 2, size=(5.0, 3.6))
        self.axes_ = axes[0]
        self._draw_sizes(self.axes_[0])
        if self.between is None:
            self._draw_share(self.axes_[1])
        else:
            self._draw_map(self.axes_[1], self.between)
        if ax is None:
            partition = self.partition
            count = len(partition.blocks)
            self.figure_.suptitle(
                f"{partition.method} partition: {count} block{'' if count == 1 else 's'}, "
                f"{partition.kernel_mass_inside:.1%} of the kernel's squared mass inside",
                x=0.01, ha="left", fontsize="large", fontweight="bold", color=INK,
            )  # fmt: skip
        return self

    def _draw_sizes(self, axes: Any) -> None:
        sizes = np.sort(self.partition.sizes)[::-1]
        dress(axes, "Sizes", "block, the largest first", "rows")
        axes.bar(np.arange(1, len(sizes) + 1), sizes, color=BLUE, width=0.8 if len(sizes) <= 60 else 1.0)
        axes.set_xlim(0.4, len(sizes) + 0.6)
        axes.set_ylim(0, 1.15 * sizes.max())
        axes.xaxis.get_major_locator().set_params(integer=True)
        level(axes, float(sizes.mean()), f"mean {sizes.mean():,.0f}")

    def _draw_share(self, axes: Any) -> None:
        inside = self.partition.kernel_mass_inside
        dress(axes, "Kernel mass", "share of the kernel's squared mass", "")
        axes.barh([0], [inside], color=BLUE, height=0.5, label="inside the blocks")
        axes.barh(
            [0], [1 - inside], left=[inside], color=GRID, height=0.5, hatch="//", edgecolor="white", label="between"
        )
        axes.set(xlim=(0, 1), ylim=(-0.6, 1.0), yticks=[])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.legend(frameon=False, fontsize="small", loc="upper left", ncols=2, labelcolor=INK)

    def _draw_map(self, axes: Any, between: np.ndarray) -> None:
        dress(axes, "Where each block has its kernel mass", "block", "block")
        axes.grid(visible=False)
        edge = len(between) + 0.5
        image = axes.imshow(between, cmap="cividis", vmin=0, vmax=1, extent=(0.5, edge, edge, 0.5))
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_major_locator().set_params(integer=True)
        bar = self.figure_.colorbar(image, ax=axes, format=lambda value, _: f"{value:.0%}")
        bar.set_label("share of the block's squared mass", color=INK)
        bar.outline.set_visible(False)
        bar.ax.tick_params(colors=INK, length=0)


def _mass_between(estimator: Any, X: Any) -> np.ndarray:
    """The share of each block's mass that it has with each block, from a sample of every block."""
    rows, blocks = estimator._rows, estimator.partition_.blocks
    X = X if hasattr(X, "shape") else np.asarray(X)
    if X.shape[0] != estimator._n_rows:
        raise ValueError(
            f"X must be the training data, which had {estimator._n_rows} rows; got {X.shape[0]}. Leave X out to draw "
            "without it."
        )
    rng = np.random.default_rng(0)
    most = max(2, _SAMPLED_ROWS // len(blocks))
    chosen = [block if len(block) <= most else rng.choice(block, size=most, replace=False) for block in blocks]
    numbers = rows[np.concatenate(chosen)]
    if estimator.kernel == "precomputed":
        values = np.asarray(X)[np.ix_(numbers, numbers)]
    else:
        device, kernel = DEVICES["cpu"](1), estimator._make_kernel()
        with device.session():
            (some,) = estimator._like_training_data(X[numbers])
            samples = device.samples(some, kernel, estimator._centre)
            values = device.gram(kernel, samples, samples)
    starts = np.cumsum([0] + [len(one) for one in chosen[:-1]])
    sums = np.add.reduceat(np.add.reduceat(values.astype(np.float64) ** 2, starts, axis=0), starts, axis=1)
    scale = estimator.partition_.sizes / np.array([len(one) for one in chosen])
    mass = sums * np.outer(scale, scale)
    return mass / mass.sum(axis=1, keepdims=True)
