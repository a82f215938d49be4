"""Finished points of an unfinished sweep: an append-only file that survives a kill at any moment.

A line is ``crc32 point status {json}``; what does not agree with its checksum, as the torn end of
a file does, is no line. The file is the mark ``INCOMPLETE`` itself, so that the mark and what a
sweep can go on from are there, and go, together.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from gradlab.errors import OutputError, RunFolderError
from gradlab.records.sweep import PointResult

NOTE = b"This sweep is not finished. The same command goes on where it stopped.\n"
BLOCK = 65_536  # points looked through at once


def log_line(index: int, result: PointResult) -> bytes:
    """Line of a finished point."""
    profile = [] if result.profile is None else result.profile.lines()
    document = json.dumps({"found": result.found(), "profile": "\n".join(profile)})
    body = f"{index} {result.status} {document}".encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


class PointLog:
    """The file, opened by one writer.

    Parameters
    ----------
    path
        Made if it is not there. A torn end is cut off.
    count
        Points of the sweep.

    Raises
    ------
    OutputError
        If another process writes to it.
    """

    def __init__(self, path: Path, count: int) -> None:
        self.path = path
        self.done = self.failed = 0
        self._count = count
        self._stream: IO[bytes] = path.open("a+b")
        self._index = tempfile.TemporaryFile()
        try:
            _lock(self._stream, path)
            # Where each line begins, 0 for none: a file, so that memory does not grow with a sweep.
            self._index.truncate(8 * count)
            self._begins = np.memmap(self._index, dtype=np.int64, shape=(count,))
            self._end = self._recover()
        except BaseException:
            self.close()
            raise

    def append(self, lines: Sequence[bytes]) -> None:
        """Write finished points, and wait until the disk has them."""
        for line in lines:
            self._stream.write(line)
            self._note(self._end, line)
            self._end += len(line)
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def missing(self) -> Iterator[int]:
        """Places of the points that are not there, in order."""
        for first in range(0, self._count, BLOCK):
            absent = np.flatnonzero(self._begins[first : first + BLOCK] == 0)
            yield from (first + absent).tolist()

    def read(self, index: int) -> dict[str, Any]:
        """Document of a finished point: ``found``, and ``profile`` as lines of text."""
        self._stream.seek(int(self._begins[index]))
        parts = _parts(self._stream.readline())
        if parts is None or parts[0] != index:
            raise RunFolderError(
                f"{self.path} lost point {index} while it was open: expected no other process to "
                "write to it; run the same command again"
            )
        document: dict[str, Any] = json.loads(parts[2])
        return document

    def close(self) -> None:
        """Let another process write."""
        self._stream.close()
        self._index.close()

    def _recover(self) -> int:
        """Find the whole lines, and cut off what comes behind the last of them."""
        self._stream.seek(0)
        end = begin = 0
        for line in self._stream:
            if self._note(begin, line) or line == NOTE:
                end = begin + len(line)
            begin += len(line)
        self._stream.truncate(end)
        if end == 0:
            self._stream.write(NOTE)
            self._stream.flush()
            end = len(NOTE)
        return end

    def _note(self, begin: int, line: bytes) -> bool:
        """Whether a line is whole; it is then remembered."""
        parts = _parts(line)
        if parts is None or not 0 <= parts[0] < self._count:
            return False
        if self._begins[parts[0]] == 0:
            self.done += 1
            self.failed += parts[1] != b"ok"
        self._begins[parts[0]] = begin
        return True


def _parts(line: bytes) -> tuple[int, bytes, bytes] | None:
    """Place, status and document of a whole line."""
    checksum, _, body = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body):
        return None
    place, status, document = body.split(b" ", 2)
    return int(place), status, document


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # a system without: two commands at once are not kept apart there
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OutputError(
            f"{path.parent} is written by another process: expected one at a time; wait for it, "
            "or name another folder"
        ) from error
    except OSError:  # some network file systems have no locks
        return
