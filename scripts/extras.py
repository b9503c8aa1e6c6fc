"""Print the packages of each extra but `dev`, a line an extra, as pyproject.toml has them."""

import pathlib
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = pathlib.Path(__file__).resolve().parent.parent / "pyproject.toml"

for name, packages in tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"].items():
    if name != "dev":
        print(*(package.replace(" ", "") for package in packages))
