"""The GPU kernels give the CPU's bits: run in Triton's interpreter, in a process of its own, without a GPU."""

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton (extra: gpu)")

PROGRAM = """
import numpy as np, torch
from broadreach import noise
from broadreach.noise import philox, table, triton_kernels, update_kernel

assert triton_kernels.supported()
rng = np.random.default_rng(0)
theta = (rng.standard_normal((9, 301)) * 10.0 ** rng.uniform(-9, 6, (9, 301))).astype(np.float32)
key, text_hash = philox.noise_key(1, 2, 3), philox.weights_hash("w")
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for offset, row_length in ((0, None), (13, None), (5 * 2**33 + 7, None), (11, 800)):
        cpu, gpu = torch.zeros(theta.shape, dtype=dtype), torch.zeros(theta.shape, dtype=dtype)
        noise.perturb_into(theta, cpu, seed=1, step=2, direction=3, sign=-1, sigma=0.01, name="w",
                           offset=offset, row_length=row_length)
        scale = float(table.check_scale(0.01, -1))
        triton_kernels.perturb(torch.from_numpy(theta), gpu, scale, key, text_hash, offset, row_length)
        assert torch.equal(cpu.view(torch.uint8), gpu.view(torch.uint8)), (dtype, offset, row_length)
        assert not torch.equal(cpu, torch.from_numpy(theta).to(dtype))

ones, cpu, gpu = torch.ones(5000), torch.zeros(5000, dtype=torch.bfloat16), torch.zeros(5000, dtype=torch.bfloat16)
noise.perturb_into(ones, cpu, seed=1, step=2, direction=3, sign=1, sigma=16.0, name="w")  # mostly exact ties
triton_kernels.perturb(ones, gpu, float(table.check_scale(16.0, 1)), key, text_hash)
assert torch.equal(cpu, gpu)

keys = [philox.noise_key(1, 2, direction) for direction in range(5)]
coefficients = [int(c) for c in rng.integers(-(2**30), 2**30, 5)]
base = rng.standard_normal(theta.size).astype(np.float32)
for offset, decay in ((0, 0.0), (3, 0.0), (1000, 0.07)):
    cpu = theta.reshape(-1).copy()
    gpu = torch.from_numpy(cpu.copy())
    update_kernel.update(cpu, base if decay else cpu, table.quantile_table(), np.array(keys, np.uint64),
                         np.array(coefficients), text_hash, offset, 2.0**-45, decay)
    triton_kernels.update_(gpu, keys, coefficients, 2.0**-45, text_hash, offset=offset,
                           base=torch.from_numpy(base), anchor_decay=decay)
    assert np.array_equal(cpu.view(np.uint32), gpu.numpy().view(np.uint32)), (offset, decay)
    assert not np.array_equal(cpu, theta.reshape(-1))
print("equal")
"""

COMPILE = """
import re, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from broadreach.noise import triton_kernels as kernels

perturb = dict(theta="*fp32", out="*i16", table="*i16", scale="*fp32", address="*u32", offset="i64", width="i32",
               pitch="i32", pieces="i32", BFLOAT16="constexpr", BLOCKS="constexpr")
update = dict(theta="*fp32", base="*fp32", table="*i16", addresses="*u32", coefficients="*i64", factors="*fp64",
              members="i32", offset="i64", size="i64", ANCHORED="constexpr", BLOCKS="constexpr")
for kernel, signature, flag in ((kernels._perturb_kernel, perturb, "BFLOAT16"),
                                (kernels._update_kernel, update, "ANCHORED")):
    source = ASTSource(kernel, signature=signature, constexprs={flag: True, "BLOCKS": kernels.BLOCKS})
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False}).asm["ptx"]
    assert not re.search(r"fma[.]|[.]ftz", ptx)
print("compiled")
"""


def run(program: str, tmp_path, **extra: str) -> str:
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), **extra}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_interpreted_gpu_kernels_give_the_cpu_bits(tmp_path):
    assert run(PROGRAM, tmp_path, TRITON_INTERPRET="1") == "equal"


def test_gpu_kernels_compile_without_contraction_or_flushing(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    assert "TRITON_INTERPRET" not in environment
    assert run(COMPILE, tmp_path, TRITON_INTERPRET="0") == "compiled"
