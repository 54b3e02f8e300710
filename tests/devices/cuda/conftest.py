"""Without a GPU, Triton's interpreter runs the kernels. It must be told before Triton is imported."""

import os

try:
    import torch
except ImportError:
    pass  # every test here is skipped then
else:
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")
