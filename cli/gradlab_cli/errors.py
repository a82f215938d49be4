"""What a failed command says and returns: one line on stderr, one exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import typer

import gradlab as gl

KNOWN_ERROR = 1
USAGE_ERROR = 2
CHECK_FAILED = 3
INTERRUPTED = 130

Parameters = ParamSpec("Parameters")


def guarded(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Command whose known errors end as one line on stderr and an exit code.

    Parameters
    ----------
    command
        Any command function. What it raises beyond the known errors passes through: that is a
        defect of gradlab, and its traceback is wanted. That of a known error is written only if
        the command's option ``debug`` is set.

    Returns
    -------
    run
        The same command, guarded.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise
        except (gl.GradlabError, OSError, MemoryError) as error:
            drop_unwritable_output()
            if kwargs.get("debug"):
                typer.echo("".join(traceback.format_exception(error)), err=True, nl=False)
            complain(one_line(error))
            raise typer.Exit(KNOWN_ERROR) from error
        except KeyboardInterrupt as error:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from error

    return run


def complain(message: str) -> None:
    """Write one error to stderr, on one line."""
    typer.echo(f"Error: {' '.join(message.split())}", err=True)


def one_line(error: BaseException) -> str:
    """What was found, in words of the user's world; never empty."""
    if isinstance(error, OSError):
        return os_error_line(error)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"out of memory{detail}: use shorter or fewer sequences, or fewer --anchors"
    return str(error) or type(error).__name__


def os_error_line(error: OSError) -> str:
    """The place and the operating system's reason, without its number."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"{reason}: nothing more could be read or written"
    return f"{os.fspath(error.filename)}: {reason}"


def drop_unwritable_output() -> None:
    """Give up what stdout still holds if it cannot be written, so that the exit does not try."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def usage_line(error: typer.TyperException) -> str:
    """A wrong command line in one line, with the command whose help says more."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "gradlab"
    return f"{error.format_message()} (see {command} --help)"
