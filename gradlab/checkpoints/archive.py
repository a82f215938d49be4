"""What every format gives: tensors by name, read when they are asked for, and what was left out."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gradlab.arrays import Array
from gradlab.checkpoints.findings import Find
from gradlab.errors import GradlabError, ModelFileError, SettingError

MAX_BYTES = 2 * 1024**3  # of one tensor or member: far above any recurrent layer


class Tensors:
    """Ordered mapping from a tensor's name to its array; nothing is read before ``[]``.

    Not a ``Mapping`` by type: who checks the items of one would read a tensor.

    Parameters
    ----------
    path
        The file, for messages.
    container
        What kind of file it is, for messages.
    readers
        By name, a function that reads and returns the array.
    kinds
        By name, the type in the file where it is not that of the array, or where it is known
        without reading.
    """

    def __init__(
        self,
        path: Path,
        container: str,
        readers: Mapping[str, Callable[[], Array]],
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self._path = path
        self._container = container
        self._readers = dict(readers)
        self._kinds = dict(kinds or {})

    def __getitem__(self, name: str) -> Array:
        """Array of that name, read now."""
        reader = self._readers[name]
        with reading(self._path, f"{self._container} (tensor {spoken(name)})"):
            return reader()

    def kind(self, name: str, read: Array | None = None) -> str:
        """Type of a tensor in the file: ``bfloat16`` for what is read as float32.

        Parameters
        ----------
        name
            The tensor.
        read
            Its array, if it has been read.
        """
        return self._kinds.get(name) or str((self[name] if read is None else read).dtype)

    def kinds(self, names: Iterable[str]) -> str:
        """Type of several tensors in the file; all types where they differ."""
        return ", ".join(dict.fromkeys(self.kind(name) for name in names))

    def __iter__(self) -> Iterator[str]:
        """Names in the file's order."""
        return iter(self._readers)

    def keys(self) -> list[str]:
        """Names in the file's order."""
        return list(self._readers)

    def __len__(self) -> int:
        """Number of tensors."""
        return len(self._readers)

    def __contains__(self, name: object) -> bool:
        """Whether the file holds a tensor of that name; does not read it."""
        return name in self._readers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Archive:
    """One model file, before anyone asks which of its tensors are recurrent.

    A format that says itself what its layers are gives ``find``; without it, layers are found by
    the names of the tensors, as PyTorch and gradlab spell them.
    """

    container: str  # for people: "PyTorch zip file"
    tensors: Tensors
    skipped: Sequence[str] = field(default=())  # a phrase for each entry that is not a tensor
    find: Find | None = None


def archive(
    path: Path,
    container: str,
    readers: Mapping[str, Callable[[], Array]],
    skipped: Sequence[str] = (),
    find: Find | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Archive:
    """Archive whose names can be shown to people.

    Parameters
    ----------
    path, container
        The file and its kind.
    readers
        By name, a function that reads the array.
    skipped
        A phrase for each entry that is not a tensor.
    find
        How the format itself finds its recurrences, if it says what its layers are.
    kinds
        By name, the type in the file where it is known without reading.

    Returns
    -------
    archive
        Names with control characters, which would break lines and tables, are among ``skipped``.
    """
    shown = {name: reader for name, reader in readers.items() if name.isprintable()}
    odd = [f"{spoken(name)} skipped (unprintable name)" for name in readers if name not in shown]
    return Archive(
        container=container,
        tensors=Tensors(path, container, shown, kinds),
        skipped=(*skipped, *odd),
        find=find,
    )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """See to it that every error of gradlab says which file it is about."""
    try:
        yield
    except GradlabError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


@contextmanager
def reading(path: Path, container: str) -> Iterator[None]:
    """Turn whatever a parser throws at damaged bytes into one clear error.

    Parameters
    ----------
    path
        The file, for the message.
    container
        What it was read as.

    Raises
    ------
    ModelFileError
        In place of any other exception that is not gradlab's own.
    """
    try:
        with naming(path):
            yield
    except GradlabError:
        raise
    # Parsers of the standard library raise nearly every exception there is on damaged bytes.
    except Exception as error:
        reason = spoken(" ".join(str(error).split())) or type(error).__name__
        raise ModelFileError(
            f"{path} cannot be read as {container}: {reason}; the file is truncated or damaged, "
            "fetch it or save it again"
        ) from error


def first_bytes(path: Path, count: int) -> bytes:
    """Beginning of a file, by which its format is recognized.

    Parameters
    ----------
    path
        The file.
    count
        Bytes wanted.

    Returns
    -------
    head
        Fewer if the file is shorter.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is empty or cannot be opened.
    """
    try:
        mode = path.stat().st_mode
        head = _head(path, count) if stat.S_ISREG(mode) else None
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} does not exist: expected a file; check the path") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{path} cannot be opened: {reason}; expected a file") from error
    if not head:
        kind = "a folder" if stat.S_ISDIR(mode) else "empty" if head == b"" else "no regular file"
        raise ModelFileError(f"{path} is {kind}: expected a file with content")
    return head


def _head(path: Path, count: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(count)


def spoken(name: str) -> str:
    """Name as it can stand in a message of one line."""
    shown = name if name.isprintable() else ascii(name)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."


def require_limit(max_bytes: int) -> None:
    """Refuse a limit that nothing could keep.

    Parameters
    ----------
    max_bytes
        The limit.

    Raises
    ------
    SettingError
        If it is below 1.
    """
    if max_bytes < 1:
        raise SettingError(f"max_bytes is {max_bytes}: expected a positive number of bytes")


def require_size(size: int, limit: int, what: str) -> None:
    """Refuse something declared larger than the limit, before memory is taken for it.

    Parameters
    ----------
    size, limit
        Bytes.
    what
        The thing of that size, for the message.

    Raises
    ------
    ModelFileError
        If it is larger.
    """
    if size > limit:
        raise ModelFileError(
            f"{what} declares {size} bytes: expected at most {limit}; the file is damaged, or the "
            "limit too low for it (option max_bytes)"
        )
