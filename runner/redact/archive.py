"""A deterministic .tar.gz: the same files give the same bytes, whoever packs them, wherever and whenever."""

import gzip
import io
import tarfile


def pack(folder: str, files: dict[str, bytes]) -> bytes:
    """Return a gzipped tar with every file under `folder`, in path order.

    Names, bytes and fixed permissions are all it holds: no times, no owner, no name of the packer.
    """
    raw, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    # GzipFile writes its header itself; gzip.compress leaves it to zlib, whose header differs by version.
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as gz:
        gz.write(raw.getvalue())
    return packed.getvalue()
