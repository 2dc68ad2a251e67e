import pytest

from podium_verifier.signed_note import Checkpoint, open_checkpoint, parse_vkey
from tests.unit.podium_verifier.exported_run import Signer

# The example key of the C2SP signed-note specification and of Go's sumdb/note package.
PUBLIC_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PUBLIC_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n\n"
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ROOT = bytes(range(32))


def test_a_signed_checkpoint_opens() -> None:
    signer = Signer()
    key = parse_vkey(signer.vkey)
    assert open_checkpoint(signer.checkpoint(9, ROOT), key) == Checkpoint(signer.name, 9, ROOT)


def test_the_specification_s_example_key_is_read_and_its_note_is_no_checkpoint() -> None:
    key = parse_vkey(PUBLIC_KEY)
    assert key.name == "PeterNeumann"
    with pytest.raises(ValueError, match="three lines"):
        open_checkpoint(PUBLIC_NOTE, key)


def test_a_witness_may_sign_too() -> None:
    signer, witness = Signer(), Signer(seed=2, name="witness.example")
    note = signer.checkpoint(9, ROOT)
    cosigned = note + witness.sign(note.split("\n\n")[0] + "\n").split("\n\n")[1]
    assert open_checkpoint(cosigned, parse_vkey(signer.vkey)).size == 9
    with pytest.raises(ValueError, match="one signature by"):
        open_checkpoint(note + note.split("\n\n")[1], parse_vkey(signer.vkey))


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "a+b",
        "a b+00000000+AAAA",
        PUBLIC_KEY.replace("c74f20a3", "c74f20a4"),
        PUBLIC_KEY.replace("+ARpc", "+Ahpc"),
        PUBLIC_KEY.replace("PeterNeumann", "PeterNewman"),
        PUBLIC_KEY + "=",
        PUBLIC_KEY[:-4],
        "\udcff+c74f20a3+AAAA",
    ],
)
def test_a_key_with_any_part_wrong_is_refused(vkey: str) -> None:
    with pytest.raises(ValueError):
        parse_vkey(vkey)


@pytest.mark.parametrize(
    "text",
    [
        "podium.local/audit\n09\n{root}\n",
        "podium.local/audit\n-9\n{root}\n",
        "podium.local/audit\n9\n{root}\nextension\n",
        "podium.local/audit\n9\n",
        "podium.local/audit\n9\nAAAA\n",
        "other\n9\n{root}\n",
    ],
)
def test_another_text_is_refused_even_when_signed(text: str) -> None:
    signer = Signer()
    note = signer.sign(text.format(root="AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
    with pytest.raises(ValueError):
        open_checkpoint(note, parse_vkey(signer.vkey))


def test_another_signer_is_refused() -> None:
    with pytest.raises(ValueError, match="one signature by"):
        open_checkpoint(Signer(seed=2).checkpoint(9, ROOT), parse_vkey(Signer().vkey))
