"""What three vendors publish about their releases, read from their pages. Pure, but for the `get` that is passed in.

mysql     pages for people: a list of versions, and per version its files with MD5 and a link to a signature
mariadb   a REST API: major lines, then releases with files and checksums
postgres  a directory per release, with `.sha256` beside each file
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import quote

from runners.errors import SourceUnavailable, Unverifiable
from runners.releases.sources import Offer

Get = Callable[[str], str]

#: Lines of MariaDB that are not yet, or never were, for production.
MARIADB_UNFINISHED = ("alpha", "beta", "rc", "preview")
#: "Linux - Generic" in MySQL's archive.
MYSQL_LINUX = 2
#: The product number of MySQL Community Server in the archive's addresses.
MYSQL_PRODUCT = 23


@dataclass(frozen=True)
class VendorFile:
    """One downloadable archive and what its vendor says of it."""

    name: str
    url: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Hex digests by algorithm."""
    signature: str = ""
    """Armored detached signature."""


def choose(names: Sequence[str], patterns: Sequence[str], version: str) -> str:
    """The first name that the first possible pattern matches whole; `{version}` in a pattern is the version."""
    for pattern in patterns:
        expression = re.compile(pattern.replace("{version}", re.escape(version)))
        for name in names:
            if expression.fullmatch(name):
                return name
    raise SourceUnavailable(f"{version}: none of the vendor's {len(names)} files is one that runs here")


# --- MySQL ---------------------------------------------------------------------------------------------------

_MYSQL_FILE = re.compile(
    # The next file's MD5 is never taken for one that has none.
    r"\((?P<name>mysql-[A-Za-z0-9._-]+)\)(?:(?!\(mysql-).){0,600}?"
    r"MD5:\s*<code class=\"md5\">\s*(?P<md5>[0-9a-f]{32})\s*<",
    re.DOTALL | re.IGNORECASE,
)


def mysql_versions(page: str) -> list[str]:
    """Versions in the archive's list; letters after the number (5.0.51a) were never kept up and are left out."""
    return list(dict.fromkeys(re.findall(r"<option[^>]*value=\"(\d+\.\d+\.\d+)\"", page)))


def mysql_files(page: str) -> dict[str, str]:
    """MD5 by file name, from the page of one version."""
    return {file["name"]: file["md5"].lower() for file in _MYSQL_FILE.finditer(html.unescape(page))}


def mysql_offers(base: str, get: Get) -> list[Offer]:
    return [Offer(version, version) for version in mysql_versions(get(f"{base}/community/"))]


def mysql_file(base: str, version: str, patterns: Sequence[str], get: Get) -> VendorFile:
    files = mysql_files(get(f"{base}/community/?tpl=version&os={MYSQL_LINUX}&version={quote(version)}&osva="))
    name = choose(sorted(files), patterns, version)
    page = html.unescape(get(f"{base}/gpg/?file={quote(name)}&p={MYSQL_PRODUCT}"))
    signature = re.search(r"-----BEGIN PGP SIGNATURE-----.*?-----END PGP SIGNATURE-----", page, re.DOTALL)
    return VendorFile(
        name=name,
        url=f"{base}/get/p/{MYSQL_PRODUCT}/file/{quote(name)}",
        checksums={"md5": files[name]},
        signature=re.sub(r"<br ?/?>", "", signature[0]) if signature else "",
    )


# --- MariaDB -------------------------------------------------------------------------------------------------


@contextmanager
def _as_the_api_gives_it(what: str) -> Iterator[None]:
    """SourceUnavailable for an answer of another shape than is read here."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceUnavailable(f"{what}: the answer is not what the API gives: {error!r}") from error


def _day(text: object) -> date | None:
    """The day in a date and time; None when it is none, such as 0000-00-00."""
    try:
        return date.fromisoformat(str(text or "")[:10])
    except ValueError:
        return None


def mariadb_offers(base: str, get: Get) -> list[Offer]:
    offers = []
    with _as_the_api_gives_it(base):
        for major in json.loads(get(f"{base}/"))["major_releases"]:
            status = str(major.get("release_status", "")).lower()
            if not any(word in status for word in MARIADB_UNFINISHED):
                releases = json.loads(get(f"{base}/{major['release_id']}/"))["releases"]
                for version, release in releases.items():
                    offers.append(Offer(version, version, _day(release.get("date_of_release"))))
    return offers


def mariadb_file(base: str, version: str, patterns: Sequence[str], get: Get) -> VendorFile:
    url = f"{base}/{version}/"
    with _as_the_api_gives_it(url):
        data = json.loads(get(url))["release_data"]
        files = {str(file["file_name"]): file for file in data[version]["files"]} if version in data else {}
        chosen = files[choose(sorted(files), patterns, version)]
        sums = chosen.get("checksum") or {}
        checksums = {name.removesuffix("sum"): str(value).lower() for name, value in sums.items() if value}
        return VendorFile(str(chosen["file_name"]), str(chosen["file_download_url"]), checksums)


# --- Postgres ------------------------------------------------------------------------------------------------


def postgres_offers(base: str, get: Get) -> list[Offer]:
    versions = re.findall(r"href=\"v(\d+(?:\.\d+)+)/?\"", get(f"{base}/"))
    return [Offer(version, version) for version in dict.fromkeys(versions)]


def checksum_beside(text: str, name: str) -> str:
    """The digest in a `sha256sum` file; Unverifiable when it is of another file or none."""
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-fA-F]{64})(?:\s+\*?(\S+))?\s*", line)
        if match and match[2] in (None, name):
            return match[1].lower()
    raise Unverifiable(f"{name}: the file beside it holds no sha256 of it; it was not used")


def postgres_file(base: str, version: str, patterns: Sequence[str], get: Get) -> VendorFile:
    page = get(f"{base}/v{version}/")
    names = re.findall(r"href=\"([A-Za-z0-9._-]+)\"", page)
    name = choose(names, patterns, version)
    url = f"{base}/v{version}/{name}"
    if f"{name}.sha256" not in names:
        raise Unverifiable(f"{name}: the vendor has no checksum beside it; it was not used")
    return VendorFile(name, url, {"sha256": checksum_beside(get(f"{url}.sha256"), name)})


OFFERS: Mapping[str, Callable[[str, Get], list[Offer]]] = {
    "mysql": mysql_offers,
    "mariadb": mariadb_offers,
    "postgres": postgres_offers,
}
FILES: Mapping[str, Callable[[str, str, Sequence[str], Get], VendorFile]] = {
    "mysql": mysql_file,
    "mariadb": mariadb_file,
    "postgres": postgres_file,
}
