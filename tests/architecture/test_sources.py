"""Rules of the source text that no other tool checks."""

import ast
from collections.abc import Iterator, Mapping

FILE_LIMIT = 400
FUNCTION_LIMIT = 40

# Spelled in halves, so that this file does not hold what it forbids.
NOT_OF_THE_REPOSITORY = (
    "/wo" + "rk/",
    "../sh" + "ared",
    "/ro" + "ot/",
    "/ho" + "me/",
    "pypi" + ".org",
    "files.python" + "hosted",
    "registry.npm" + "js",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    """Every function and method of a module."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def lines_of_body(function: Function) -> int:
    """Lines of a function's statements, without its signature and its docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    before = function.body[0].end_lineno if documented else function.body[0].lineno - 1
    return (function.end_lineno or 0) - (before or 0)


def imported_names(node: ast.AST) -> set[str]:
    """Dotted names that an import statement binds or reaches through; empty for other nodes."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {f"{node.module}.{alias.name}" for alias in node.names}
    return set()


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a tree outside ``if TYPE_CHECKING:``."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from runtime_nodes(child)


def test_files_stay_short_enough_to_read_in_one_sitting(
    repository_texts: Mapping[str, str], syntax_trees: Mapping[str, ast.Module]
) -> None:
    lengths = {name: len(repository_texts[name].splitlines()) for name in syntax_trees}
    assert lengths
    assert {name: count for name, count in lengths.items() if count >= FILE_LIMIT} == {}


def test_functions_stay_short_enough_to_read_at_a_glance(
    syntax_trees: Mapping[str, ast.Module],
) -> None:
    lengths = {
        f"{name}:{function.lineno} {function.name}": lines_of_body(function)
        for name, tree in syntax_trees.items()
        for function in functions(tree)
    }
    assert lengths
    assert {name: count for name, count in lengths.items() if count > FUNCTION_LIMIT} == {}


def test_no_file_names_a_place_outside_the_repository(
    repository_texts: Mapping[str, str],
) -> None:
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in repository_texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if any(place in line for place in NOT_OF_THE_REPOSITORY)
    ]
    assert found == []


def test_pyplot_with_its_global_state_is_never_imported(
    syntax_trees: Mapping[str, ast.Module],
) -> None:
    found = [
        f"{name}:{ast.unparse(node)}"
        for name, tree in syntax_trees.items()
        for node in ast.walk(tree)
        if any("pyplot" in imported.split(".") for imported in imported_names(node))
    ]
    assert found == []


def test_the_core_prints_nothing(syntax_trees: Mapping[str, ast.Module]) -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in syntax_trees.items()
        if name.startswith("gradlab/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"print", "sys.stdout.write"}
    ]
    assert found == []


def test_only_the_frames_module_imports_pandas_into_the_core(
    syntax_trees: Mapping[str, ast.Module],
) -> None:
    importers = {
        name
        for name, tree in syntax_trees.items()
        if name.startswith("gradlab/")
        for node in runtime_nodes(tree)
        if any(imported.split(".")[0] == "pandas" for imported in imported_names(node))
    }
    assert importers == {"gradlab/records/frames.py"}
