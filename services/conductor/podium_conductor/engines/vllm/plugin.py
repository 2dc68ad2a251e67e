"""Runs in every process that vLLM starts, before it does anything there: two mends for CPUs.

vLLM finds it by the entry point `vllm.general_plugins`. It does nothing on other platforms.
"""

import ctypes
import time

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
_NAP_S = 0.0003


def register() -> None:
    """Ask for tile registers, and wait for a worker's answer without taking a core."""
    from vllm.platforms import current_platform  # noqa: PLC0415 - vLLM is there when it calls this

    if current_platform.is_cpu():
        _allow_tiles()
        _wait_without_spinning()


def _allow_tiles() -> None:
    """Ask the kernel for AMX tile registers, as the bf16 kernels forget to; refused elsewhere, harmlessly."""
    ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)


def _wait_without_spinning() -> None:
    """Let the scheduler's process nap while the worker computes.

    It looks for an answer without pause for a second after the last one, which on a GPU saves microseconds; a
    CPU's step takes a hundred milliseconds, and the looking takes a core from the model for all of them. It
    must go on looking, though: its other way to wait, for a notification, can miss one and wait for ever.
    """
    from vllm.distributed.device_communicators import shm_broadcast  # noqa: PLC0415

    if hasattr(shm_broadcast, "sched_yield"):
        shm_broadcast.sched_yield = _nap


def _nap() -> None:
    time.sleep(_NAP_S)
