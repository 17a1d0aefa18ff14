"""Generates the modules `decree.v1` from the contract during the build, so that the repository does not contain them.

A source distribution contains the contract, and builds the same package.
"""

import pathlib
import shutil
import sys

import setuptools
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# The place in a source distribution, or in the repository.
PROTO = HERE / "proto" if (HERE / "proto").is_dir() else HERE.parents[1] / "proto"


class BuildWithStubs(build_py):
    """Builds the Python files, and adds the files of protoc."""

    def run(self):
        super().run()
        import grpc_tools
        from grpc_tools import protoc

        # The well-known types are part of grpc_tools.
        known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        out = pathlib.Path(self.build_lib)
        files = sorted(str(file) for file in (PROTO / "decree/v1").glob("*.proto"))
        flags = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTO}", f"-I{known}", *flags, *files]):
            sys.exit("protoc failed")


class SourcesWithContract(sdist):
    """Archives the sources together with the contract."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        shutil.copytree(PROTO / "decree/v1", pathlib.Path(base_dir) / "proto/decree/v1")


setuptools.setup(
    packages=["decree"],
    package_dir={"decree": "decree"},
    cmdclass={"build_py": BuildWithStubs, "sdist": SourcesWithContract},
)
