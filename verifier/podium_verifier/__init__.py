"""The independent verifier of exported Podium runs.

It shares nothing with the services but this folder's dependencies: the standard library and
`cryptography`. Whoever doubts Podium reads these few hundred lines, or writes their own from the formats
they cite: RFC 6962 (Merkle tree), C2SP signed-note and tlog-checkpoint, RFC 8785 (canonical JSON).
"""

from podium_verifier.faults import ExitCode, Fault
from podium_verifier.verify import Verified, verify_export

__all__ = ["ExitCode", "Fault", "Verified", "verify_export"]
