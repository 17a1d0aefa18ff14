"""Generates the modules `decree_client.v1` from the contract during the build, so that the repository does not contain them.

A source distribution contains the contract, and builds the same package.
"""

import pathlib
import re
import shutil
import sys
import tempfile

import setuptools
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
# The place in a source distribution, or in the repository.
PROTO = HERE / "proto" if (HERE / "proto").is_dir() else HERE.parents[1] / "proto"


# The license of the repository is that of the package.
if not (HERE / "LICENSE").exists():
    shutil.copyfile(HERE.parents[1] / "LICENSE", HERE / "LICENSE")


class BuildWithStubs(build_py):
    """Builds the Python files, and adds the files of protoc."""

    def run(self):
        super().run()
        generate(pathlib.Path(self.build_lib) / "decree_client/v1")


class SourcesWithContract(sdist):
    """Archives the sources together with the contract."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        shutil.copytree(PROTO / "decree/v1", pathlib.Path(base_dir) / "proto/decree/v1")


def generate(folder):
    """Writes the stubs. protoc names modules after the contract; the module `decree` is another package of PyPI."""
    import grpc_tools
    from grpc_tools import protoc

    # The well-known types are part of grpc_tools.
    known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    files = sorted(str(file) for file in (PROTO / "decree/v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as out:
        flags = [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        if protoc.main(["protoc", f"-I{PROTO}", f"-I{known}", *flags, *files]):
            sys.exit("protoc failed")
        for file in sorted(pathlib.Path(out, "decree/v1").iterdir()):
            text = re.sub(r"^from decree\.v1 import", "from decree_client.v1 import", file.read_text("utf-8"), flags=re.MULTILINE)
            text = re.sub(r"'decree\.v1\.(\w+_pb2)'", r"'decree_client.v1.\1'", text)
            (folder / file.name).write_text(text, "utf-8")


setuptools.setup(
    packages=["decree_client", "decree_client.v1"],
    package_data={"decree_client": ["py.typed"]},
    cmdclass={"build_py": BuildWithStubs, "sdist": SourcesWithContract},
)
