"""A conda channel in a directory: a Python (a link to the one that runs the tests, as venv makes it) and pip."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import time
import zipfile
from importlib import resources
from pathlib import Path

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
SITE_PACKAGES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def make_channel(folder: Path) -> str:
    """Write the channel; its address."""
    home = Path(sys.base_prefix) / "bin"
    python = {"pyvenv.cfg": f"home = {home}\ninclude-system-site-packages = false\nversion = {VERSION}\n".encode()}
    links = {"bin/python": str(Path(sys.executable).resolve()), "bin/python3": "python"}
    entries = [
        _package(folder, "python", VERSION, [], python, links),
        _package(folder, "pip", "1", ["python"], _pip(), {}),
    ]
    packages = dict(entries)
    for subdir, found in (("linux-64", packages), ("noarch", {})):
        (folder / subdir).mkdir(exist_ok=True)
        data = {"info": {"subdir": subdir}, "packages": found, "packages.conda": {}, "repodata_version": 1}
        (folder / subdir / "repodata.json").write_text(json.dumps(data))
    return folder.as_uri()


def _pip() -> dict[str, bytes]:
    """pip's files, from the wheel that Python itself carries."""
    bundled = resources.files("ensurepip") / "_bundled"
    wheel = next(each for each in bundled.iterdir() if each.name.startswith("pip-"))
    with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        return {f"{SITE_PACKAGES}/{name}": archive.read(name) for name in names}


def _package(
    folder: Path, name: str, version: str, depends: list[str], files: dict[str, bytes], links: dict[str, str]
) -> tuple[str, dict[str, object]]:
    """Write one package; its entry in the repodata."""
    index = {"name": name, "version": version, "build": "0", "build_number": 0, "depends": depends}
    index |= {"subdir": "linux-64", "arch": "x86_64", "platform": "linux", "timestamp": int(time.time() * 1000)}
    paths = [
        {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
        for path, data in files.items()
    ]
    paths += [{"_path": path, "path_type": "softlink"} for path in links]
    info = {"info/index.json": json.dumps(index), "info/paths.json": json.dumps({"paths": paths, "paths_version": 1})}
    info["info/files"] = "\n".join([*files, *links]) + "\n"
    file = folder / "linux-64" / f"{name}-{version}-0.tar.bz2"
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:bz2") as archive:
        for path, data in [*((path, text.encode()) for path, text in info.items()), *files.items()]:
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
        for path, target in links.items():
            member = tarfile.TarInfo(path)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    content = file.read_bytes()
    digests = {"md5": hashlib.md5(content).hexdigest(), "sha256": hashlib.sha256(content).hexdigest()}
    return file.name, {**index, **digests, "size": len(content)}
