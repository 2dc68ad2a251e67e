"""The tree on disk: C2SP-shaped tiles of 256 hashes, written when they fill.

Hashes of the newest leaves, under 256 of them, are made again from the leaves when they are needed.
"""

from podium_audit.ports import LogReader, StoreError, TileRow
from podium_core.domain import merkle

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
_TILE_BYTES = TILE_WIDTH * merkle.HASH_BYTES


class TreeTail:
    """The growing end of the tree: its frontier and the unfinished tile of each tile level."""

    __slots__ = ("_dirty", "_filled", "_frontier", "_partial")

    def __init__(self, frontier: merkle.Frontier, partial: list[bytearray]) -> None:
        self._frontier = frontier
        self._partial = partial
        self._dirty: set[int] = set()
        self._filled: list[TileRow] = []

    @property
    def size(self) -> int:
        """How many leaves the tree has."""
        return self._frontier.size

    @property
    def root(self) -> bytes:
        """The root over all of them."""
        return self._frontier.root

    def append(self, data: bytes) -> int:
        """Add a leaf's bytes; return its index."""
        index = self._frontier.size
        for level, completed in enumerate(self._frontier.append(merkle.leaf_hash(data))):
            if level % TILE_HEIGHT == 0:
                self._put(level // TILE_HEIGHT, index >> level, completed)
        return index

    def changed_tiles(self) -> list[TileRow]:
        """Return the tiles to write since the last call: filled ones, and unfinished ones above level 0."""
        rows = self._filled
        for level in self._dirty:
            index = (self.size >> level * TILE_HEIGHT) // TILE_WIDTH
            rows.append(TileRow(level, index, bytes(self._partial[level])))
        self._filled = []
        self._dirty.clear()
        return rows

    def _put(self, tile_level: int, position: int, node: bytes) -> None:
        if tile_level == len(self._partial):
            self._partial.append(bytearray())
        partial = self._partial[tile_level]
        partial += node
        if tile_level:
            self._dirty.add(tile_level)
        if len(partial) == _TILE_BYTES:
            self._filled.append(TileRow(tile_level, position // TILE_WIDTH, bytes(partial)))
            self._dirty.discard(tile_level)
            partial.clear()


def load_tail(reader: LogReader, size: int) -> TreeTail:
    """Rebuild the growing end of a stored tree of `size` leaves; raise StoreError if tiles are missing."""
    partial: list[bytearray] = []
    count = size
    while count:
        width = count % TILE_WIDTH
        hashes = read_tile(reader, len(partial), count // TILE_WIDTH) if width else b""
        if len(hashes) < width * merkle.HASH_BYTES:
            raise StoreError("a tile at the end of the tree is missing")
        partial.append(bytearray(hashes[: width * merkle.HASH_BYTES]))
        count //= TILE_WIDTH
    nodes = TileNodes(reader)
    peaks = [nodes(level, index) for level, index in merkle.subtrees(0, size)]
    return TreeTail(merkle.Frontier(size, peaks), partial)


class TileNodes:
    """Looks up roots of perfect subtrees; keeps the tiles it read, so use one per proof or export."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._tiles: dict[tuple[int, int], bytes] = {}

    def __call__(self, level: int, index: int) -> bytes:
        """Return the node's hash; raise StoreError when its tile is missing."""
        tile_level, inner = divmod(level, TILE_HEIGHT)
        first = index << inner
        place = tile_level, first // TILE_WIDTH
        tile = self._tiles.get(place)
        if tile is None:
            tile = self._tiles[place] = read_tile(self._reader, *place)
        begin = first % TILE_WIDTH * merkle.HASH_BYTES
        end = begin + (merkle.HASH_BYTES << inner)
        if len(tile) < end:
            raise StoreError("a tile of the tree is missing")
        hashes = [tile[at : at + merkle.HASH_BYTES] for at in range(begin, end, merkle.HASH_BYTES)]
        while len(hashes) > 1:
            hashes = [merkle.node_hash(*hashes[at : at + 2]) for at in range(0, len(hashes), 2)]
        return hashes[0]


def inclusion_proof(nodes: TileNodes, index: int, size: int) -> list[bytes]:
    """Return the inclusion proof of leaf `index` in the tree of the first `size` leaves."""
    return merkle.inclusion_path(index, size, nodes)


def read_tile(reader: LogReader, level: int, index: int) -> bytes:
    """Return the hashes of a tile as far as there are any. Raises StoreError."""
    stored = reader.tile(level, index)
    if stored or level:
        return stored
    leaves = reader.leaves(index * TILE_WIDTH, (index + 1) * TILE_WIDTH)
    return b"".join([merkle.leaf_hash(leaf) for leaf in leaves])
