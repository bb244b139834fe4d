"""``wrssl embed`` and ``wrssl cache``: rows of numbers from photographs or texts, and where they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wrssl.cli.app import app
from wrssl.cli.options import Plugin


@app.command()
def embed(
    paths: Annotated[list[Path], typer.Argument(help="Image files and folders, or text files of one text per line.")],
    out: Annotated[Path, typer.Option(help="A new .npz file: X, the rows, and ids.")],
    embedder: Annotated[
        str | None, typer.Option(help="Default lite0 for images and minilm for texts; see docs/guides/embeddings.md.")
    ] = None,
    views: Annotated[int, typer.Option(help="Augmented versions of each photograph, beside it.", min=0)] = 0,
    cache: Annotated[bool, typer.Option(help="Keep rows for the next time.")] = True,
    backend: Annotated[str, typer.Option(help="local, or dask: the cluster at --address, else processes here.")] = (
        "local"
    ),
    address: Annotated[str | None, typer.Option(help="Of its scheduler, for example tcp://host:8786.")] = None,
    plugin: Plugin = None,
) -> None:
    """Photographs or texts as rows of numbers of which near ones are alike."""
    import numpy as np

    from wrssl.embedding import cache_root, embed_items, embed_on_dask, find_embedder, read_items
    from wrssl.errors import DataError, OptionError
    from wrssl.runs import storing, write_atomically

    if out.exists():
        raise DataError(f"{out} exists already; choose another name.")
    if out.suffix != ".npz":
        raise DataError(f"The rows are written as .npz; name the file {out.with_suffix('.npz')}.")
    if backend not in ("local", "dask"):
        raise OptionError(f"There is no backend {backend!r}; use dask, or leave it out for this process.")
    if backend == "local" and address is not None:
        raise OptionError("An address belongs to a cluster; add --backend dask.")
    kind, ids, items = read_items(paths)
    chosen = find_embedder(embedder or {"image": "lite0", "text": "minilm"}[kind])
    settings: dict[str, Any] = {"views": views, "cache": cache_root() if cache else None}
    if backend == "dask":
        found = embed_on_dask(items, chosen, address=address, plugins=plugin or (), **settings)
    else:
        found = embed_items(items, chosen, **settings)
    kept = [name for name, good in zip(ids, found.readable.tolist(), strict=True) if good]
    if not kept:
        first = f"{ids[0]}: {found.reasons[0]}"
        raise DataError(f"None of the {len(items)} items can be read (first: {first}); check them.")
    rows = np.stack([np.asarray(view) for view in found.rows])

    def write(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, X=rows if views else rows[0], ids=np.array(kept), embedder=np.array(chosen.fingerprint))

    with storing(f"The rows in {out}", "embed again: what is in the cache is not computed twice."):
        write_atomically(out, write)
    for number, reason in found.reasons.items():
        typer.echo(f"skipped: {ids[number]}: {reason}", err=True)
    if found.trouble is not None:
        typer.echo(f"note: the rows could not be kept for the next time ({found.trouble})", err=True)
    typer.echo(f"{len(kept)} rows of {chosen.dim} values in {out}; {found.computed} were computed, the rest was known")


@app.command()
def cache(
    list_: Annotated[bool, typer.Option("--list", help="What is kept, and how much of the disk it takes.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it; runs stay as they are.")] = False,
) -> None:
    """What is kept between runs: embedded rows, decoded images, converted networks."""
    from datetime import datetime

    from wrssl.embedding import cache_root, entries, remove_all
    from wrssl.errors import OptionError

    root = cache_root()
    if root is None:
        raise OptionError("There is no home folder, so nothing is kept; set WRSSL_CACHE to a folder.")
    if list_ == clear:
        raise OptionError("Choose one: wrssl cache --list, or wrssl cache --clear.")
    if clear:
        typer.echo(f"removed {remove_all(root) / 1e6:.1f} MB")
        return
    found = list(entries(root))
    typer.echo(f"{root}: {sum(entry.size for entry in found) / 1e6:.1f} MB")
    for entry in found:
        used = datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d")
        typer.echo(f"  {entry.size / 1e6:10.1f} MB  {entry.files:6} files  used {used}  {entry.what}")
