"""What a machine and a network can do.

The numbers of the CPU are of one core of an AMD EPYC with AVX-512: kernel values by ``python -m benchmarks.cpu work``,
the others from where the seconds of fits of covtype (20,000 and 50,000 rows, one thread) went; updates are of one core
of an Intel Xeon. Those of the GPU are of an NVIDIA H200. What is assumed and not measured says so.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from parablock.planning.checks import positive


@dataclass(frozen=True)
class Machine:
    """What one rank computes with.

    Attributes
    ----------
    cores : int
        Blocks that it solves at the same time, where `plan` is not told the number of threads. Of a GPU its
        multiprocessors.
    value_ns, feature_ns : float
        Nanoseconds of one core for a float32 kernel value: so many, and so many for each feature.
    update_ns, update_row_ns : float
        Nanoseconds of a coordinate update inside a block: so many, and so many for each row of the block.
    core_bandwidth, bandwidth : float
        Bytes a second that one core, and all cores together, read of kept columns.
    row_ns : float
        Nanoseconds for what every rank does by itself in an iteration, for each watched row and output: violation, gap,
        line search, and the choice of the next blocks. One core of the host does it, also where a GPU computes kernel
        values.
    memory : float
        Bytes for kernel values, where `plan` is not told a limit.
    keeps : bool
        Whether kernel columns are kept; a GPU computes them again.

    Examples
    --------
    >>> from parablock.planning import plan
    >>> from parablock.planning import Machine
    >>> slow, fast = Machine(cores=4), Machine(cores=32, memory=64e9)
    >>> seconds = [plan(10**6, 54, machine=machine).seconds.total for machine in (slow, fast)]
    >>> seconds[0] > 4 * seconds[1]
    True
    """

    cores: int = 16
    value_ns: float = 1.26
    feature_ns: float = 0.026
    update_ns: float = 0.0
    update_row_ns: float = 1.5
    core_bandwidth: float = 16e9
    bandwidth: float = 100e9  # assumed: sixteen cores of a server reach the limit of its memory
    row_ns: float = 80.0
    memory: float = 4 * 2**30
    keeps: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name == "keeps":
                continue
            positive(f"Machine.{field.name}", getattr(self, field.name), zero=field.name in ("value_ns", "update_ns"))

    @classmethod
    def measured(cls, features: int = 54) -> Machine:
        """This machine, by about two seconds of kernel values and of products with kept columns; the costs of updates
        and of rows are those of `Machine()`.

        Parameters
        ----------
        features : int, default=54
            Of the data that a forecast is wanted for; at least 9.
        """
        from parablock.planning.measuring import measured_rates

        return cls(**measured_rates(features))


# By `python -m benchmarks.gpu_kernels`: 787 G kernel values a second at 54 features and 83 G at 784, divided among 132
# multiprocessors; an update of a pair takes 2.65 microseconds in a block of 4,096 rows and 2.46 in one of 2,048. The
# bandwidth is the maker's.
_H200 = Machine(
    cores=132,
    value_ns=0.0625,
    feature_ns=0.00195,
    update_ns=2270.0,
    update_row_ns=0.093,
    core_bandwidth=4.8e12 / 132,
    bandwidth=4.8e12,
    memory=70e9,
    keeps=False,
)
DEVICES = {"cpu": Machine(), "cuda": _H200}


@dataclass(frozen=True)
class Network:
    """What ranks talk by.

    Attributes
    ----------
    bandwidth : float
        Bytes a second that a rank receives.
    latency : float
        Seconds that a message takes however short it is.
    one_machine : bool
        Whether all ranks are on one machine and share its memory bandwidth.

    Examples
    --------
    >>> from parablock.planning import plan
    >>> from parablock.planning import Network
    >>> ethernet = Network(bandwidth=0.11e9, latency=100e-6)  # one gigabit a second
    >>> forecast = plan(10**6, 54, ranks=8, network=ethernet)
    >>> forecast.seconds.communication > 1
    True
    """

    bandwidth: float
    latency: float
    one_machine: bool = False

    def __post_init__(self) -> None:
        positive("Network.bandwidth", self.bandwidth)
        positive("Network.latency", self.latency, zero=True)


# Assumed, not measured: nine tenths of the nominal bandwidth of 10 and 100 Gbit/s, and usual latencies.
NETWORKS = {
    "shared memory": Network(bandwidth=5e9, latency=5e-6, one_machine=True),
    "10 GbE": Network(bandwidth=1.1e9, latency=50e-6),
    "InfiniBand": Network(bandwidth=11e9, latency=2e-6),
}
