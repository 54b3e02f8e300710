"""Compile every Triton kernel for an H100 or H200, without having one.

    python -m tests.devices.cuda.offline

The interpreter lets pass what a compiler refuses: variables of a loop that change their type, shapes that are no powers
of two, globals that are no constants. Triton compiles for a card that is not there, so each launch is turned into a
compilation. Prints what each kernel takes of a processor; a stack means that registers have run out.
"""

import re
import subprocess
import tempfile
from pathlib import Path

import scipy.sparse as sp
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from parablock.devices.cuda import sparse
from parablock.devices.cuda.descent import Limits, descend
from parablock.devices.cuda.fused import block_grams, gram, kernel_dot
from parablock.devices.cuda.kernel_values import spec_of
from parablock.devices.cuda.losses import spec_of_loss
from parablock.devices.cuda.operands import DOUBLE, EXACT, FLOAT32, prepare
from parablock.devices.cuda.sparse import SparseOperand
from parablock.kernels import make_kernel
from tests.oracle import LOSSES

HOPPER = GPUTarget("cuda", 90, 32)
SHARED_MEMORY = 227 * 1024  # of a program on such a card
NAMES = {torch.float16: "fp16", torch.float32: "fp32", torch.float64: "fp64", torch.int32: "i32", torch.int64: "i64"}
OPTIONS = ("num_warps", "num_stages")
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


def compile_instead(kernel, *arguments, grid, warmup, **named):
    """What stands in for the launch of a kernel."""
    options = {name: named.pop(name) for name in OPTIONS if name in named}
    values = dict(zip(kernel.arg_names, arguments)) | named
    signature, constants, hints = {}, {}, {}
    for number, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        if parameter.is_constexpr:
            signature[parameter.name], constants[(number,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name], hints[(number,)] = "*" + NAMES[value.dtype], [["tt.divisibility", 16]]
        else:
            signature[parameter.name] = "fp32" if isinstance(value, float) else "i32"
            if isinstance(value, int) and value % 16 == 0:
                hints[(number,)] = [["tt.divisibility", 16]]
    compiled = triton.compile(ASTSource(kernel, signature, constants, hints), target=HOPPER, options=options)
    shared = compiled.metadata.shared
    print(f"{kernel.fn.__name__:14} {options} {_resources(compiled.asm['cubin'])} shared={shared}", flush=True)
    assert shared <= SHARED_MEMORY, f"{kernel.fn.__name__} wants {shared} bytes of shared memory"


def _resources(cubin):
    if not CUOBJDUMP.exists():
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(CUOBJDUMP), "--dump-resource-usage", file.name]
        found = re.search(r"REG:(\d+) STACK:(\d+)", subprocess.run(command, capture_output=True, text=True).stdout)
    return f"registers={found[1]} stack={found[2]}" if found else ""


def main():
    JITFunction.run = compile_instead
    rbf = spec_of(make_kernel("rbf", 1.0))
    for d, kind in ((54, DOUBLE), (54, FLOAT32), (784, EXACT), (784, DOUBLE)):
        rows = prepare(torch.rand((256, d), generator=torch.Generator().manual_seed(0)), kind)
        print(f"{d} features, {kind}")
        for outputs in (1, 4, 10):
            kernel_dot(rbf, rows, rows, torch.ones((outputs, 256)))
        gram(rbf, rows, rows)
        block_grams(rbf, rows, torch.arange(256).reshape(2, 128))
    for name in ("matern32", "matern52", "linear", "polynomial", "sigmoid", "cosine", "laplacian", "chi2"):
        print(name)
        rows = prepare(torch.rand((256, 54)), FLOAT32 if name in ("laplacian", "chi2") else DOUBLE)
        kernel_dot(spec_of(make_kernel(name, 1.0)), rows, rows, torch.ones((1, 256)))
    for name in ("rbf", "laplacian", "chi2", "matern52", "linear", "polynomial", "cosine"):
        print(f"CSR, {name}")
        entries = sp.random(100, 300, density=0.05, format="csr", random_state=0)
        rows = SparseOperand.of(entries, make_kernel(name, 1.0).overlap, torch.device("cpu"))
        sparse.gram(spec_of(make_kernel(name, 1.0)), rows, rows)
    for size, dtype in ((4096, torch.float16), (300, torch.float32)):
        for name, loss in LOSSES.items():
            for pairs in (True, False):
                print(f"{size} variables, {dtype}, {name}, {'pairs' if pairs else 'single'}")
                numbers = torch.ones((1, size), dtype=torch.float64)
                matrices, which = torch.zeros((1, size, size), dtype=dtype), torch.zeros(1, dtype=torch.int64)
                limits = Limits(pairs, 0.03, 1e-3)
                descend(spec_of_loss(loss), matrices, which, numbers, numbers, numbers, numbers, limits)


if __name__ == "__main__":
    main()
