"""`pointdrop releases`: what can be measured, where it comes from, and whether its bytes are those of the pin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import emit, json_text, print_rows
from pointdrop.paths import configs_dir, state_dir

if TYPE_CHECKING:
    from runners.releases import Catalogue, Installed, Pin, ReleaseState

Dbms = Annotated[str, typer.Argument(help="postgres, mysql, mariadb or myrocks.")]
Versions = Annotated[list[str], typer.Argument(help="Versions, as `releases list` prints them.")]
SourceName = Annotated[
    str | None, typer.Option("--source", help="Only this source of the manifest, also one that is asked by name only.")
]

#: Exit status of a command that did what it could while something could not be reached.
INCOMPLETE = 4

#: Columns for people; keys of a release in JSON, and columns in CSV.
SHOWN = ("dbms", "version", "line", "released", "state", "cached", "source", "sha256", "reason")
LISTED = ("dbms", "version", "line", "released", "state", "cached", "source", "locator", "digest", "reason")

group = typer.Typer(no_args_is_help=True)


def _catalogue(offline: bool = False) -> Catalogue:
    from runners.releases import Catalogue

    return Catalogue(configs_dir(), state_dir(), offline=offline)


def _row(state: ReleaseState) -> dict[str, Any]:
    release = state.release
    return {
        "dbms": release.dbms, "version": release.version, "line": release.line,
        "released": release.released and release.released.isoformat(), "state": state.state, "cached": state.cached,
        "source": release.build, "locator": release.source, "digest": release.digest, "reason": state.reason,
    }  # fmt: skip


def _print_installed(installed: list[Installed], format: Format) -> None:
    rows: list[dict[str, Any]] = [
        {
            "dbms": build.release.dbms, "version": build.release.version, "line": build.release.line,
            "source": build.release.build, "digest": build.release.digest, "prefix": str(build.prefix),
            "loader": build.loader and str(build.loader.program), "files": len(build.files),
        }
        for build in installed
    ]  # fmt: skip
    if format is Format.json:
        rows = [row | {"parts": dict(build.parts)} for row, build in zip(rows, installed, strict=True)]
    if format is Format.text:
        emit("".join(f"{row['dbms']} {row['version']}  {row['digest'][:12]}  {row['prefix']}\n" for row in rows))
    else:
        print_rows(rows, format)


def _finish(catalogue: Catalogue) -> None:
    """Say what could not be done; exit 4 when there was something."""
    for warning in catalogue.warnings:
        typer.echo(f"pointdrop: {warning}", err=True)
    if catalogue.warnings:
        raise typer.Exit(INCOMPLETE)


@group.command("list")
def list_releases(
    dbms: Annotated[str | None, typer.Argument(help="Only this DBMS.")] = None,
    line: Annotated[str | None, typer.Option(help="Only this line, such as 17 or 10.11.")] = None,
    state: Annotated[
        Literal["pinned", "new", "withdrawn", "not_runnable", "gone", "cached"] | None,
        typer.Option(help="Only this state."),
    ] = None,
    format: options.RowFormat = Format.text,
    out: options.Out = None,
) -> None:
    """Every release that is known, in version order, with its state; asks nobody.

    `pinned` can be fetched and must have the digest shown; `new` was offered at the last discovery and has no pin yet;
    `withdrawn` and `not_runnable` are refused, with the reason; `gone` was pinned here, but its source lost it since;
    `cached` is unpacked on this machine.

    JSON keys: dbms, version, line, released, state, cached, source, locator, digest, reason, toolchain. The last
    is what is known here of how a cached release was built. CSV columns: dbms, version, line, released, state,
    cached, source, locator, digest, reason.
    """
    catalogue = _catalogue(offline=True)
    states = [
        listed
        for name in ([dbms] if dbms else catalogue.dbmses())
        for listed in catalogue.list(name)
        if line in (None, listed.release.line)
        and (state in (None, listed.state) or (state == "cached" and listed.cached))
    ]
    rows = [_row(state) for state in states]
    if format is Format.json:
        rows = [row | {"toolchain": catalogue.toolchain(state)} for row, state in zip(rows, states, strict=True)]
    shown = [
        row
        | {
            "state": row["state"].replace("_", " "),
            "cached": "yes" if row["cached"] else "",
            "sha256": row["digest"][:12],
        }
        for row in rows
    ]
    print_rows(rows, format, SHOWN if format in (Format.text, Format.markdown) else LISTED, out=out, shown=shown)


@group.command()
def discover(
    dbms: Annotated[list[str] | None, typer.Argument(help="Only these DBMS.")] = None,
    source: SourceName = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Download what is new, check it against the vendor, and pin it here.")
    ] = False,
    out: options.Out = None,
    format: Annotated[Literal["text", "json"], typer.Option(help="text is TOML for the manifest.")] = "text",
) -> None:
    """Ask the sources what they have, and print what is new as an addition to the manifest.

    A release without a pin is only a comment in it: a pin needs the bytes, so `--pin` downloads them. Exit code 4 when
    a source could not be reached; what it offered last is used.
    """
    catalogue = _catalogue()
    names = dbms or catalogue.dbmses()
    for name in names:
        catalogue.discover(name, source)
    if pin:
        from runners.releases import ReleaseError

        for new in [state for name in names for state in catalogue.list(name) if state.state == "new"]:
            typer.echo(f"fetching {new.release.name} from {new.release.build}", err=True)
            try:
                catalogue.fetch(new.release.dbms, new.release.version, source=new.release.build)
            except ReleaseError as error:
                catalogue.warnings.append(str(error))
    unpinned = [state for name in names for state in catalogue.list(name) if state.state == "new"]
    pins = {name: catalogue.new_pins(name) for name in names}
    if format == "json":
        of_dbms = {name: [pin.model_dump(mode="json", exclude_defaults=True) for pin in pins[name]] for name in pins}
        emit(json_text({"new": [_row(state) for state in unpinned], "pins": of_dbms}), out)
    else:
        emit(_discovered_text(unpinned, pins), out)
    _finish(catalogue)


def _discovered_text(unpinned: list[ReleaseState], pins: dict[str, list[Pin]]) -> str:
    from runners.releases.manifest import patch_text

    blocks = []
    for name, some in pins.items():
        new = [state.release for state in unpinned if state.release.dbms == name]
        if some or new:
            blocks.append(f"# append to configs/dbms/{name}/releases.toml\n")
            blocks += [f"# new, not pinned: {release.name} ({release.source})\n" for release in new]
            blocks.append(patch_text(some))
    return "".join(blocks)


@group.command()
def verify(
    dbms: Annotated[str | None, typer.Argument(help="Only this DBMS.")] = None,
    versions: Annotated[list[str] | None, typer.Argument(help="Only these versions.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Download once more, and compare with the pin.")] = False,
    format: options.RowFormat = Format.text,
) -> None:
    """Read everything cached once more and compare it with the pins: archives, and every file unpacked from them.

    Exit code 1 when something differs; nothing is repaired, `releases prune` and `fetch` do that.
    """
    from runners.releases import UnknownRelease
    from runners.releases import verify as verify_release

    catalogue = _catalogue(offline=not again)
    results: list[dict[str, Any]] = []
    if dbms and (unknown := set(versions or ()) - {state.release.version for state in catalogue.list(dbms)}):
        raise UnknownRelease(f"{dbms} {', '.join(sorted(unknown))} is not known; see: pointdrop releases list {dbms}")
    for name in [dbms] if dbms else catalogue.dbmses():
        for state in catalogue.list(name):
            wanted = not versions or state.release.version in versions
            if wanted and (state.cached or (again and state.state == "pinned")):
                problems = verify_release(catalogue, name, state.release.version, again=again)
                results.append({"release": state.release.name, "ok": not problems, "problems": problems})
    if format is not Format.text:
        joined = [result | {"problems": "; ".join(result["problems"])} for result in results]
        print_rows(results if format is Format.json else joined, format, ("release", "ok", "problems"))
    else:
        for result in results:
            typer.echo(f"{'ok      ' if result['ok'] else 'CHANGED '} {result['release']}")
            for problem in result["problems"]:
                typer.echo(f"         {problem}")
    if not results:
        typer.echo("nothing of this is in the cache, so there is nothing to verify", err=True)
    if not all(result["ok"] for result in results):
        raise typer.Exit(1)


@group.command()
def fetch(
    dbms: Dbms,
    versions: Versions,
    source: SourceName = None,
    offline: options.Offline = False,
    format: options.RowFormat = Format.text,
) -> None:
    """Fetch releases, verified against their pins, and print where they are.

    A release that the manifest does not hold is checked against its vendor and pinned on this machine. Another digest
    than the pinned one stops the command with both values and exit code 2.
    """
    catalogue = _catalogue(offline)
    installed = [catalogue.fetch(dbms, version, source=source) for version in versions]
    _print_installed(installed, format)
    _finish(catalogue)


@group.command()
def add(
    dbms: Dbms,
    versions: Versions,
    source: SourceName = None,
    withdrawn: Annotated[str, typer.Option(help="Mark them: the vendor took them back, for this reason.")] = "",
    not_runnable: Annotated[str, typer.Option(help="Mark them: they cannot be measured, for this reason.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the addition; write nothing.")] = False,
) -> None:
    """Fetch releases, check them against their vendors, and write their pins into the manifest.

    Review and commit the change: from then on these digests, and no others, are what the versions mean.
    """
    from runners.releases import pins_for
    from runners.releases.manifest import add_pins, manifest_path, patch_text

    catalogue = _catalogue()
    pins = pins_for(catalogue, dbms, versions, source=source, withdrawn=withdrawn, not_runnable=not_runnable)
    if not dry_run:
        add_pins(manifest_path(configs_dir(), dbms), dbms, pins)
    typer.echo(patch_text(pins), nl=False)
    _finish(catalogue)


@group.command()
def build(
    dbms: Dbms,
    commit: Annotated[str, typer.Option(help="A tag, branch or commit of the git source.")] = "",
    tree: Annotated[Path | None, typer.Option(help="A directory with source code, as it is.")] = None,
    prefix: Annotated[Path | None, typer.Option(help="Nothing to build: take what is installed below here.")] = None,
    repository: Annotated[str | None, typer.Option(help="Another repository than the manifest's.")] = None,
    patch: Annotated[Path | None, typer.Option(help="Apply this with `patch -p1` first.")] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Build without network, away from everything else.")
    ] = False,
    format: options.RowFormat = Format.text,
) -> None:
    """Build a DBMS from source by the recipe in `configs/dbms/<dbms>/recipes`, and print where it is.

    The same source, patch, recipe and compiler are built once. The log is kept below `cache/builds`.
    """
    from pointdrop.jobs.comparison_sides import Kind, Side, resolve
    from runners.releases import UnknownRelease

    catalogue = _catalogue()
    origins: dict[Kind, str | Path | None] = {"git": commit, "tree": tree, "prefix": prefix}
    sides = [Side(dbms, kind, str(what), patch, "default") for kind, what in origins.items() if what]
    if len(sides) != 1:
        raise UnknownRelease("name one of --commit, --tree and --prefix")
    if prefix and patch:
        raise UnknownRelease("--patch needs source code to build; with --prefix there is none")
    _print_installed([resolve(sides[0], catalogue, sandbox, repository)], format)
    _finish(catalogue)


@group.command()
def prune(
    keep: Annotated[str, typer.Option(help="Keep at most this much, such as 10GiB or 500MiB; 0 keeps what runs.")],
    format: options.TextOrJson = "text",
) -> None:
    """Remove what was not used for longest until the cache fits; never what is running, never a pin."""
    from runners.releases import parse_size

    catalogue = _catalogue(offline=True)
    removed = catalogue.cache.prune(parse_size(keep))
    left = catalogue.cache.size()
    if format == "json":
        emit(json_text({"removed": [vars(entry) for entry in removed], "left_bytes": left}))
    else:
        for entry in removed:
            typer.echo(f"removed {entry.kind} {entry.name} ({entry.size / 2**20:.0f} MiB)")
        typer.echo(f"{left / 2**30:.1f} GiB left")
