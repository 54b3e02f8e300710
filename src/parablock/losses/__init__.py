"""Losses: one file a loss. A loss knows its dual term g, the primal loss behind it, its bounds and slopes."""

from parablock.losses.base import Loss
from parablock.losses.epsilon_insensitive import EpsilonInsensitive
from parablock.losses.hinge import Hinge
from parablock.losses.logistic import Logistic
from parablock.losses.quantile import Quantile
from parablock.losses.squared_error import SquaredError
from parablock.losses.squared_hinge import SquaredHinge

__all__ = ["EpsilonInsensitive", "Hinge", "Logistic", "Loss", "Quantile", "SquaredError", "SquaredHinge"]
