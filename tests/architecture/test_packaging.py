"""The repository keeps its promises to whoever clones or installs it."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import gradlab
import gradlab_cli
import gradlab_reports
from gradlab_cli.app import app


def make_targets(makefile: str) -> set[str]:
    """Targets that a Makefile defines by name."""
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, flags=re.MULTILINE))


def code_of(markdown: str) -> list[str]:
    """Lines of the code blocks and code spans of a page."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", markdown)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()] + spans


def test_every_package_says_that_it_is_typed(package_folders: tuple[Path, ...]) -> None:
    assert [folder.name for folder in package_folders if not (folder / "py.typed").is_file()] == []


def test_the_three_packages_come_from_one_installation_or_checkout(
    package_folders: tuple[Path, ...],
) -> None:
    """A mixture of an installed core and a checked-out command line would test neither."""
    found = [Path(p.__file__ or "").parent for p in (gradlab, gradlab_cli, gradlab_reports)]
    beside_each_other = len({folder.parent for folder in found}) == 1
    assert beside_each_other or found == list(package_folders)


def test_constraints_hold_names_and_versions_only(repository_texts: Mapping[str, str]) -> None:
    lines = repository_texts["constraints.txt"].splitlines()
    pattern = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9]+(\.[0-9a-z]+)*")
    assert lines
    assert [line for line in lines if not pattern.fullmatch(line)] == []


def test_constraints_pin_every_package_that_a_developer_installs(
    root: Path, repository_texts: Mapping[str, str]
) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["dev"], *extras["docs"]]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {project["name"]}
    pinned = {line.partition("==")[0] for line in repository_texts["constraints.txt"].splitlines()}
    assert names - pinned == set()


def words_after(program: str, texts: Mapping[str, str]) -> set[str]:
    """First words that the repository's pages give to a program on its command line."""
    pages = [text for name, text in texts.items() if name.endswith(".md")]
    lines = [line for page in pages for line in code_of(page)]
    found = (re.match(rf"{program} +([a-z][a-z-]*)", line) for line in lines)
    return {match[1] for match in found if match}


def test_make_commands_of_the_pages_exist(repository_texts: Mapping[str, str]) -> None:
    named = words_after("make", repository_texts)
    assert {"demo", "test"} <= named
    assert named - make_targets(repository_texts["Makefile"]) == set()


def test_gradlab_commands_of_the_pages_exist(repository_texts: Mapping[str, str]) -> None:
    named = words_after("gradlab", repository_texts)
    assert "report" in named
    assert named - {command.name for command in app.registered_commands} == set()


def test_the_changelog_has_a_section_for_the_version(repository_texts: Mapping[str, str]) -> None:
    assert f"## [{gradlab.__version__}]" in repository_texts["CHANGELOG.md"]
