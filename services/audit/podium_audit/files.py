"""The log's stores and keys, as the settings name them: files for one process, or PostgreSQL for several."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium_audit import keys
from podium_audit.anchors import AnchorStore
from podium_audit.log.head_guard import HeadGuard
from podium_audit.ports import ConversationStore, LogStore, RunKeys, StoreError
from podium_audit.proofs import history
from podium_audit.pseudonyms import Pseudonyms, PseudonymStore
from podium_audit.settings import AuditSettings
from podium_audit.stores.anchors import SqliteAnchors
from podium_audit.stores.conversations import SqliteConversations
from podium_audit.stores.pseudonyms import SqlitePseudonyms
from podium_audit.stores.readers import View
from podium_audit.stores.run_keys import SqliteKeyReader, SqliteRunKeys
from podium_audit.stores.sqlite import SqliteStore
from podium_audit.stores.sqlite_reader import SqliteReader
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain.errors import Code, PodiumError

if TYPE_CHECKING:
    from podium_audit.sharing.installation import Installation

LOG_FILE = "log.db"
RUN_KEYS_FILE = "run-keys.db"
CONVERSATIONS_FILE = "conversations.db"
ANCHORS_FILE = "anchors.db"


@dataclass(frozen=True, slots=True)
class Files:
    """The stores, and the keys they need."""

    store: LogStore
    run_keys: RunKeys
    conversations: ConversationStore
    signer: CheckpointSigner
    wrapper: keys.FileKeyWrapper
    data_dir: Path
    installation: "Installation | None" = None
    """What is in PostgreSQL, if anything is."""

    def anchors(self, settings: AuditSettings) -> AnchorStore:
        """Return the store of anchors, not connected yet."""
        if self.installation is not None:
            return self.installation.anchors()
        return SqliteAnchors(self.data_dir / ANCHORS_FILE, busy_s=settings.commit_wait_s)

    def view(self) -> View:
        """Open a view for one reading thread."""
        if self.installation is not None:
            return self.installation.view()
        reader = SqliteReader(self.data_dir / LOG_FILE)
        key_reader = SqliteKeyReader(self.data_dir / RUN_KEYS_FILE, self.wrapper)

        def close() -> None:
            reader.close()
            key_reader.close()

        return View(reader, key_reader, close)

    def pseudonyms(self, *, wait_s: float) -> Pseudonyms:
        """Return the pseudonyms of the people that runs are for; connected at the first one."""
        store: PseudonymStore
        if self.installation is not None:
            store = self.installation.pseudonyms()
        else:
            store = SqlitePseudonyms(self.data_dir / RUN_KEYS_FILE, busy_s=wait_s)
        return Pseudonyms(store, self.wrapper, wait_s=wait_s)

    def close(self) -> None:
        """Let go of them."""
        self.run_keys.close()
        self.store.close()


def settled_files(settings: AuditSettings) -> Files:
    """Return what `open_files` does, after finishing or dropping a change of keys that broke off."""
    files = open_files(settings)
    if not files.signer.is_handing_over:
        return files
    with usable(files):
        files.store.open()
        guard = HeadGuard(settings.checkpoints, files.signer, interval_s=settings.checkpoint_interval_s)
        history.settle(settings.keys, settings.origin, files.store, guard)
    files.close()
    return open_files(settings)


def open_files(settings: AuditSettings) -> Files:
    """Return the stores, not connected yet, with their keys. Raises PodiumError for keys that do not fit."""
    data_dir, keys_dir = settings.data_dir, settings.keys
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    log_exists = (data_dir / LOG_FILE).exists() or (settings.checkpoints / keys.CHECKPOINT_FILE).exists()
    keys.init_keys(keys_dir, log_exists=log_exists)
    wrapper = keys.FileKeyWrapper(keys_dir / keys.ENCRYPTION_KEY_FILE)
    signer = _signer(settings)
    if (installation := _installation(settings, wrapper)) is not None:
        stores = (installation.log_store(), installation.run_keys(), installation.conversations())
        return Files(*stores, signer, wrapper, data_dir, installation)
    busy_s = settings.commit_wait_s
    return Files(
        SqliteStore(data_dir / LOG_FILE, busy_s=busy_s),
        SqliteRunKeys(data_dir / RUN_KEYS_FILE, wrapper),
        SqliteConversations(data_dir / CONVERSATIONS_FILE, busy_s=busy_s),
        signer,
        wrapper,
        data_dir,
    )


def _signer(settings: AuditSettings) -> CheckpointSigner:
    signer, former = keys.signers(settings.keys)
    return CheckpointSigner(settings.origin, signer, former=former)


def _installation(settings: AuditSettings, wrapper: keys.FileKeyWrapper) -> "Installation | None":
    if not settings.database_url.get_secret_value():
        return None
    try:
        from podium_audit.sharing.installation import Installation  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError:
        raise PodiumError(
            Code.INVALID_REQUEST,
            "database_url needs PostgreSQL's driver: install podium[postgres]",
            reason="LOG_UNUSABLE",
        ) from None
    return Installation(settings, wrapper)


@contextmanager
def usable(files: Files) -> Iterator[None]:
    """Let go of the files if they turn out not to be usable; then it raises PodiumError."""
    with ExitStack() as undo:
        undo.callback(files.close)
        try:
            yield
        except StoreError as error:
            message = f"the log cannot be used: {error}"
            raise PodiumError(Code.INVALID_REQUEST, message, reason="LOG_UNUSABLE") from None
        undo.pop_all()
