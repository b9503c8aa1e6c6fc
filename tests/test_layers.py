"""The laws of the tree: who may import whom, how long a file may be, and that what the README says is there."""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "tokbatch"
# From left to right: each layer may import itself and what stands to its left.
LAYERS = [
    "_version",
    "errors",
    "collector",
    "spec",
    "engine",
    "batch",
    "hub",
    "tokenizer",
    "job",
    "frontends",
    "__main__",
]
ANYWHERE = {"sample"}  # paths of embedded files: imports nothing
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: pathlib.Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path: pathlib.Path) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_to_its_left(path: pathlib.Path):
    layer = layer_of(path)
    if layer == "__init__" or layer in ANYWHERE:
        pytest.skip("no layer")
    assert layer in LAYERS, f"{layer} has no place in the order of layers"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "tokbatch" or parts[1] in ANYWHERE or parts[1] == "__version__":
            continue
        imported = parts[1] if len(parts) > 1 and parts[1] in LAYERS else "tokenizer"
        assert LAYERS.index(imported) <= LAYERS.index(layer), f"{path}: {layer} imports {name}"


FORBIDDEN = [
    # (third party, layers that may import it)
    ("pyarrow", {"batch", "hub", "tokenizer", "job", "frontends"}),
    ("datasets", {"job", "frontends"}),
    ("multiprocess", {"job", "frontends"}),
    ("click", {"frontends"}),
    ("tokenizers", set()),
    ("transformers", set()),
    ("unicodedata", {"job", "frontends"}),  # names of characters for people; never a fact that an id depends on
]


@pytest.mark.parametrize(("third_party", "allowed"), FORBIDDEN, ids=[name for name, _ in FORBIDDEN])
def test_third_parties_stay_in_their_layers(third_party: str, allowed: set[str]):
    users = {layer_of(p) for p in MODULES if any(n.split(".")[0] == third_party for n in imports(p))}

    assert users <= allowed


def test_only_one_file_asks_the_oracle():
    users = [
        str(path.relative_to(ROOT))
        for folder in ("src", "tests", "scripts", "jobs", "bench")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(name.split(".")[0] == "tokenizers" for name in imports(path))
        and folder != "bench"  # the peers of the benchmarks are adapters, and tokenizers is one of them
    ]

    assert users == ["tests/oracles/oracle.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_file_gets_away(path: pathlib.Path):
    lines = path.read_text(encoding="utf-8").splitlines()

    assert len(lines) <= 450
    assert lines
    assert lines[0].startswith(('"""', 'r"""')), "a module begins with its docstring"


def test_importing_the_package_is_cheap():
    code = (
        "import sys, tokbatch; print(sorted({'pyarrow', 'datasets', 'regex', 'numpy', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_public_names_exist():
    import tokbatch

    assert [name for name in tokbatch.__all__ if not hasattr(tokbatch, name)] == []
    with pytest.raises(AttributeError, match="no_such_name"):
        tokbatch.no_such_name


def test_the_tree_in_the_readme_is_the_tree():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- tree -->\n```\w*\n(.*?)```", readme, re.DOTALL)
    assert block, "README.md has no tree"
    folder: list[str] = []
    for line in block[1].splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        folder[depth:] = [name]

        assert (ROOT / "".join(folder)).exists(), f"README.md names {''.join(folder)}"


def test_the_project_speaks_of_itself_alone():
    """No path of a machine and no registry's host in what is committed."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    pattern = re.compile(rb"/([w]ork|[r]oot|[h]ome)/|artifactory")
    bad = [
        name
        for name in tracked
        if name != "tests/test_layers.py" and (ROOT / name).is_file() and pattern.search((ROOT / name).read_bytes())
    ]

    assert bad == []
