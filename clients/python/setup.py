"""Generates the modules `decree.v1` from the contract while the package is built, so that none of them is kept in the repository."""

import pathlib
import sys

import setuptools
from setuptools.command.build_py import build_py

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


class BuildWithStubs(build_py):
    """Builds the Python files, and those of protoc beside them."""

    def run(self):
        super().run()
        import grpc_tools
        from grpc_tools import protoc

        # The well-known types come with the tools.
        known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        out = pathlib.Path(self.build_lib)
        files = sorted(str(file) for file in (PROTO / "decree/v1").glob("*.proto"))
        flags = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTO}", f"-I{known}", *flags, *files]):
            sys.exit("protoc failed")


setuptools.setup(packages=["decree"], package_dir={"decree": "decree"}, cmdclass={"build_py": BuildWithStubs})
