"""The public surface: explicit, documented and complete."""

import ast
import inspect
from collections.abc import Mapping

import pytest

import gradlab


def names_for_type_checkers(tree: ast.Module) -> set[str]:
    """Names that a module imports under ``if TYPE_CHECKING:``."""
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [
        node
        for block in blocks
        if "TYPE_CHECKING" in ast.unparse(block.test)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gradlab.")
    ]
    return {alias.asname or alias.name for node in imports for alias in node.names}


@pytest.mark.parametrize("name", gradlab.__all__)
def test_every_public_name_resolves_and_says_what_it_is(name: str) -> None:
    value = getattr(gradlab, name)
    if inspect.isclass(value) or callable(value):
        documentation = inspect.getdoc(value) or ""
        generated = documentation.startswith(f"{name}(")
        assert documentation
        assert not generated


def test_public_names_are_listed_once_and_offered_by_dir() -> None:
    assert len(set(gradlab.__all__)) == len(gradlab.__all__)
    assert set(gradlab.__all__) <= set(dir(gradlab))


def test_type_checkers_see_exactly_the_names_that_load_on_use(
    syntax_trees: Mapping[str, ast.Module],
) -> None:
    eager = {"__version__"}
    seen = names_for_type_checkers(syntax_trees["gradlab/__init__.py"])
    assert seen == set(gradlab.__all__) - eager


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    name = "no_such_measurement"
    with pytest.raises(AttributeError, match=name):
        getattr(gradlab, name)
