"""A time-stamping authority (RFC 3161) on loopback: openssl's, with certificates of its own."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

OPENSSL = shutil.which("openssl")
_CONFIG = """[tsa]
default_tsa = here
[here]
serial = {home}/serial
signer_cert = {home}/tsa.pem
signer_key = {home}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
ess_cert_id_alg = sha256
"""


@dataclass(slots=True)
class Authority:
    """Where it answers, and the root that vouches for it. `is_lying` makes it stamp something else."""

    url: str
    roots_file: Path
    is_lying: bool = False


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _make_certificates(home: Path) -> None:
    now = datetime.now(UTC)
    root_key, tsa_key = (rsa.generate_private_key(65_537, 2_048) for _ in range(2))

    def builder(name: str, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name("test root"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )

    root = (
        builder("test root", root_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(root_key, hashes.SHA256())
    )
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
    tsa = builder("test tsa", tsa_key).add_extension(usage, critical=True).sign(root_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    (home / "root.pem").write_bytes(root.public_bytes(pem))
    (home / "tsa.pem").write_bytes(tsa.public_bytes(pem))
    (home / "tsa.key").write_bytes(
        tsa_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (home / "serial").write_text("01\n")
    (home / "tsa.cnf").write_text(_CONFIG.format(home=home))


@asynccontextmanager
async def authority(home: Path) -> AsyncIterator[Authority]:
    """Serve until the block ends; needs openssl."""
    home.mkdir(exist_ok=True)
    _make_certificates(home)
    kept: list[bytes] = []

    async def stamp(request: web.Request) -> web.Response:
        kept.append(await request.read())
        (home / "query.tsq").write_bytes(kept[0] if here.is_lying else kept[-1])
        process = await asyncio.create_subprocess_exec(
            OPENSSL or "openssl", "ts", "-reply", "-config", str(home / "tsa.cnf"), "-section", "here",
            "-queryfile", str(home / "query.tsq"), "-out", str(home / "reply.tsr"),
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert await process.wait() == 0
        return web.Response(
            body=(home / "reply.tsr").read_bytes(), content_type="application/timestamp-reply"
        )

    app = web.Application()
    app.router.add_post("/", stamp)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    here = Authority(f"http://127.0.0.1:{runner.addresses[0][1]}/", home / "root.pem")
    try:
        yield here
    finally:
        await runner.cleanup()
