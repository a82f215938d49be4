"""Members of a zip archive, with their declared sizes checked before anything is unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import cast
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from gradlab.checkpoints.archive import require_size, spoken
from gradlab.errors import ModelFileError

SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
MAX_RATIO = 1100  # deflate cannot pack tighter than about 1032 to 1


def member_sizes(path: Path) -> dict[str, int]:
    """Unpacked size of every member by name, in the archive's order."""
    with ZipFile(path) as archive:
        return {info.filename: info.file_size for info in archive.infolist()}


@contextmanager
def open_member(path: Path, name: str, max_bytes: int) -> Iterator[BufferedIOBase]:
    """Stream of one member.

    Parameters
    ----------
    path
        The archive.
    name
        The member.
    max_bytes
        Limit of the declared size.

    Yields
    ------
    stream
        Never longer than the declared size; its checksum is verified at the end.

    Raises
    ------
    ModelFileError
        If the member is encrypted, or its declared size is above the limit or impossible.
    """
    with ZipFile(path) as archive:
        info = archive.getinfo(name)
        _require_plausible(info, path.stat().st_size, max_bytes)
        with archive.open(info) as stream:
            yield cast("BufferedIOBase", stream)


def read_member(path: Path, name: str, max_bytes: int) -> bytes:
    """Whole content of one member, under the same checks as ``open_member``."""
    with open_member(path, name, max_bytes) as stream:
        return stream.read()


def _require_plausible(info: ZipInfo, archive_size: int, max_bytes: int) -> None:
    what = f"member {spoken(info.filename)}"
    require_size(info.file_size, max_bytes, what)
    require_size(info.compress_size, archive_size, what)
    packed = info.compress_size * (1 if info.compress_type == ZIP_STORED else MAX_RATIO)
    require_size(info.file_size, packed, what)
    if info.flag_bits & 1:
        raise ModelFileError(
            f"{what} is encrypted: expected a plain archive; save it without a password"
        )
