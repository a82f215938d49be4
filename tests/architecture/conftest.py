"""The repository as data: where it lies and which files it holds."""

import ast
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gradlab", "cli/gradlab_cli", "reports/gradlab_reports")


@pytest.fixture(scope="session")
def root() -> Path:
    """Top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def package_folders() -> tuple[Path, ...]:
    """Source folders of the three packages."""
    return tuple(ROOT / package for package in PACKAGES)


@pytest.fixture(scope="session")
def repository_texts() -> Mapping[str, str]:
    """Text files of the repository by path; files that git ignores are not part of it."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = [name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]
    contents = {name: (ROOT / name).read_bytes() for name in names}
    return {
        name: content.decode(errors="replace")
        for name, content in contents.items()
        if b"\0" not in content
    }


@pytest.fixture(scope="session")
def syntax_trees() -> Mapping[str, ast.Module]:
    """Parsed modules of the three packages by path."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {
        file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in files
    }
