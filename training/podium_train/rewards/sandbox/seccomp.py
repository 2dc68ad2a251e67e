"""The system call filter: a classic BPF program as `bwrap --seccomp` reads it (seccomp(2)).

It allows by default and denies what a program that computes an answer never needs: tracing, mounting, keys,
new namespaces, kernel modules, io_uring, bpf, and every socket that is not a Unix one (vsock and netlink
are not, or not everywhere, held back by a network namespace).
"""

import struct

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT = 0, 4, 16
_X32_BIT = 0x40000000
_NEW_NAMESPACE_FLAGS = 0x7E020080
"""CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} of clone(2)."""
_AF_UNIX = 1

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> AUDIT_ARCH value and column of the tables below."""
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "perf_event_open": (298, 241),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116),
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "personality": (135, 92),
}  # fmt: skip


def _do(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def filter_for(machine: str) -> bytes | None:
    """Return the filter for a machine as `platform.machine` names it; None where its numbers are unknown."""
    if machine not in _ARCHITECTURES:
        return None
    architecture, column = _ARCHITECTURES[machine]
    deny = _do(_RETURN, _ERRNO | _EPERM)
    program = [
        _do(_LOAD, _AT_ARCHITECTURE),
        _do(_JUMP_EQUAL, architecture, 1, 0),
        _do(_RETURN, _KILL_PROCESS),
        _do(_LOAD, _AT_NUMBER),
        _do(_JUMP_AT_LEAST, _X32_BIT, 0, 1),
        deny,
        # glibc falls back from clone3, whose flags a filter cannot see, to clone.
        _do(_JUMP_EQUAL, _CLONE3[column], 0, 1),
        _do(_RETURN, _ERRNO | _ENOSYS),
    ]
    for numbers in _DENIED.values():
        program += [_do(_JUMP_EQUAL, numbers[column], 0, 1), deny]
    program += [
        _do(_JUMP_EQUAL, _CLONE[column], 0, 4),
        _do(_LOAD, _AT_FIRST_ARGUMENT),
        _do(_JUMP_ANY_BIT, _NEW_NAMESPACE_FLAGS, 0, 1),
        deny,
        _do(_RETURN, _ALLOW),
        _do(_JUMP_EQUAL, _SOCKET[column], 0, 3),
        _do(_LOAD, _AT_FIRST_ARGUMENT),
        _do(_JUMP_EQUAL, _AF_UNIX, 1, 0),
        deny,
        _do(_RETURN, _ALLOW),
    ]
    return b"".join(program)
