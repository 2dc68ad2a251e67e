"""Runs in every process that vLLM starts, before it does anything there: two mends for CPUs.

vLLM finds it by the entry point `vllm.general_plugins`. It does nothing on other platforms.
"""

import ctypes

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


def register() -> None:
    """Ask for tile registers, and wait for a worker's answer without spinning."""
    from vllm.platforms import current_platform  # noqa: PLC0415 - vLLM is there when it calls this

    if current_platform.is_cpu():
        _allow_tiles()
        _wait_without_spinning()


def _allow_tiles() -> None:
    """Ask the kernel for AMX tile registers, as the bf16 kernels forget to; refused elsewhere, harmlessly."""
    ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)


def _wait_without_spinning() -> None:
    """Let the scheduler's process sleep while the worker computes.

    It spins for a second after each answer, which on a GPU saves microseconds; a CPU's step takes a hundred
    milliseconds, and the spinning takes a core from the model for all of them.
    """
    from vllm.distributed.device_communicators import shm_broadcast  # noqa: PLC0415

    made = shm_broadcast.SpinCondition.__init__
    if "busy_loop_s" in made.__code__.co_varnames and made.__defaults__ == (1,):
        made.__defaults__ = (0.0,)
