"""Take named files out of an archive; nothing else in it is looked at, so nothing can land outside its folder."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from wrssl.api import DataError

_MAX_MEMBER = 1 << 30


def take_from_zip(archive: Path, wanted: dict[str, Path]) -> None:
    """Write members of a zip file to given paths.

    The names of the written files come from the caller, never from the archive. Each file appears under its final
    name only when it is complete.

    Args:
        archive: the zip file.
        wanted: member name → path to write.
    """
    try:
        with zipfile.ZipFile(archive) as file:
            for member, target in wanted.items():
                info = file.getinfo(member)
                if info.file_size > _MAX_MEMBER:
                    raise DataError(f"{member} in {archive} is larger than expected; fetch the archive again.")
                part = target.with_name(target.name + ".part")
                try:
                    with file.open(info) as source, part.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
                    os.replace(part, target)
                finally:
                    part.unlink(missing_ok=True)
    except DataError:
        raise
    except KeyError as error:
        raise DataError(f"{archive} does not hold {error.args[0]}; fetch the archive again.") from error
    except OSError as error:
        raise DataError(f"{archive} cannot be unpacked ({error}); check the disk and its permissions.") from error
    except Exception as error:  # a damaged one can fail in any way: an unknown compression, a password, a wrong sum
        raise DataError(f"{archive} is a damaged zip file ({error}); remove it and fetch it again.") from error
