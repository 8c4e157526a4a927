"""Which device and dtype to run on, what memory there is, and clocks that wait for the device."""

from __future__ import annotations

import time

import torch

from sparselab.validation import check_choice

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
ALIASES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# Ampere; what came before computes bfloat16 in software.
FIRST_BFLOAT16_CAPABILITY = 8
HOST = torch.device("cpu")


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """Return CUDA if there, else MPS, else the CPU; or the named device once it is there."""
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"unknown device {device!r}: 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps' is expected."
        ) from None
    check_choice("device", chosen.type, ("cpu", "cuda", "mps"))
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {device!r} is not there: torch sees {torch.cuda.device_count()} CUDA devices."
        )
    if chosen.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device 'mps' is not there: torch sees no Apple GPU.")
    return chosen


def choose_dtype(dtype: str | torch.dtype, device: torch.device) -> torch.dtype:
    """Return the named dtype, or for ``"auto"`` the fastest one that the device computes natively.

    That is bfloat16 where it is native, float16 on an older CUDA device, else float32.
    """
    if isinstance(dtype, torch.dtype):
        dtype = str(dtype).removeprefix("torch.")
    if dtype != "auto":
        known = ("auto", *DTYPES, *ALIASES)
        name = check_choice("dtype", dtype, known)
        return DTYPES[ALIASES.get(name, name)]
    if device.type == "cuda":
        # torch.cuda.is_bf16_supported() asks the current device, which may be another one.
        major, _ = torch.cuda.get_device_capability(device)
        return torch.bfloat16 if major >= FIRST_BFLOAT16_CAPABILITY else torch.float16
    return torch.bfloat16 if device.type == "cpu" and _cpu_has_bfloat16() else torch.float32


def _cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 matrices in hardware (x86 AVX-512 or AMX, Arm)."""
    found = torch.cpu.get_capabilities()
    return any(found.get(name) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))


def available_bytes(device: torch.device) -> int:
    """Return the memory that is free on ``device`` now, in bytes.

    On CUDA that is what the driver has left and what torch has taken but holds no tensor in.
    """
    if device.type == "cuda":
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + idle
    import psutil

    # An Apple GPU shares the machine's memory.
    return psutil.virtual_memory().available


def check_fits(what: str, needed: int, device: torch.device) -> None:
    """Raise ``ValueError`` with the numbers where ``needed`` bytes do not fit on ``device``."""
    free = available_bytes(device)
    if needed > free:
        raise ValueError(
            f"{what} needs {needed / 2**30:,.1f} GiB on {device}, which has "
            f"{free / 2**30:,.1f} GiB free."
        )


def device_name(device: torch.device) -> str:
    """Return what the hardware calls itself, for tables."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    processor, threads = torch.cpu.get_capabilities().get("cpu_name"), torch.get_num_threads()
    return f"{processor or 'CPU'}, {threads} thread{'s' if threads > 1 else ''}"


class Stopwatch:
    """Milliseconds between calls, each waiting until the device has finished."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._last = self._now()

    def lap(self) -> float:
        """Return the milliseconds since the last call, or since the start."""
        now = self._now()
        elapsed, self._last = now - self._last, now
        return elapsed * 1000

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._device.type == "mps":
            torch.mps.synchronize()
        return time.perf_counter()
