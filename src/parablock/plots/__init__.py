"""Pictures of fits, as scikit-learn's Displays: convergence, partitions, scaling.

They need matplotlib (``pip install 'parablock[plot]'``), which is imported when one is drawn.
"""

from parablock.plots.convergence import ConvergenceDisplay
from parablock.plots.partition import PartitionDisplay
from parablock.plots.scaling import ScalingDisplay

__all__ = ["ConvergenceDisplay", "PartitionDisplay", "ScalingDisplay"]
