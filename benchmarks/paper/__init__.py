"""The paper's experiments as commands: ``python -m benchmarks.paper NAME --scale small|full``."""
