"""Where the library lies if nobody says so, and whether a folder is on the network."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "runs.sqlite"
VARIABLE = "TOPOX_LIBRARY"
# Of Linux: file systems that another machine may write to at the same time.
_NETWORK = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.rclone", "fuse.sshfs", "gfs2"),
    *(
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb2",
        "smb3",
        "smbfs",
        "virtiofs",
    ),
)


def default_path() -> Path:
    """Return the file of the library: ``TOPOX_LIBRARY`` if set, else one in the user's data folder.

    That folder is ``$XDG_DATA_HOME`` or ``~/.local/share``, on macOS ``~/Library/Application
    Support``, on Windows ``%LOCALAPPDATA%``.
    """
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    return own_folder() / FILE_NAME


def own_folder() -> Path:
    """Return the workbench's folder among the user's data."""
    return data_folder(sys.platform, os.environ, Path.home()) / "topox-workbench"


def data_folder(platform: str, variables: Mapping[str, str], home: Path) -> Path:
    """Return the folder for a user's data, by ``sys.platform`` and environment."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    windows = platform == "win32"
    given = variables.get("LOCALAPPDATA" if windows else "XDG_DATA_HOME", "")
    if given and (windows or given.startswith("/")):
        return Path(given)  # the XDG rules ignore a relative one
    return home / "AppData" / "Local" if windows else home / ".local" / "share"


def on_network(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Return whether a file lies on a network file system, as far as Linux tells; False where it does not."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        folder = path.parent.resolve()
    except OSError:
        return False
    kinds: dict[Path, str] = {}
    for line in lines:
        fields = line.split()
        if len(fields) > 2:  # a later mount hides an earlier one at the same place
            kinds[Path(fields[1].replace("\\040", " "))] = fields[2]
    nearest = next((one for one in (folder, *folder.parents) if one in kinds), None)
    return nearest is not None and kinds[nearest] in _NETWORK
