"""What three vendors publish about their releases, read from their pages. Pure, but for the `get` that is passed in.

mysql     pages for people: a list of versions, and per version its files with MD5 and a link to a signature; the newest
          of each line on one site, and what came before on another, the archive
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

from history.versions import line_of
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
class VendorPages:
    """Where a vendor's pages begin, and how one is read."""

    address: str
    get: Get
    current: str = ""
    """Where those of the newest releases begin, when `address` is an archive."""
    notes: list[str] = field(default_factory=list)
    """What could not be read while the rest could; grows."""


@dataclass(frozen=True)
class WantedFile:
    """Which of a release's files is wanted."""

    version: str
    patterns: Sequence[str]
    """Of names, with `{version}` and `{platform}`."""
    platforms: Sequence[str] = ()
    """What may stand for `{platform}`, the best first."""


@dataclass(frozen=True)
class VendorFile:
    """One downloadable archive and what its vendor says of it."""

    name: str
    url: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    """Hex digests by algorithm."""
    signature: str = ""
    """Armored detached signature."""
    platform: str = ""
    """What its name says it was built for."""


def choose(names: Sequence[str], wanted: WantedFile) -> tuple[str, str]:
    r"""(name, platform) of the first name that a pattern matches whole, with the best platform that any has.

    >>> choose(["m-8.0.9-glibc2.12.gz", "m-8.0.9-glibc2.28.gz"],
    ...        WantedFile("8.0.9", [r"m-{version}-{platform}\.gz"], ["glibc2.17", "glibc2.28", "glibc2.12"]))
    ('m-8.0.9-glibc2.28.gz', 'glibc2.28')
    """
    for platform in wanted.platforms or ("",):
        for pattern in wanted.patterns:
            filled = pattern.replace("{version}", re.escape(wanted.version))
            expression = re.compile(filled.replace("{platform}", re.escape(platform)))
            for name in names:
                if expression.fullmatch(name):
                    return name, platform
    raise SourceUnavailable(f"{wanted.version}: none of the vendor's {len(names)} files is one that runs here")


# --- MySQL ---------------------------------------------------------------------------------------------------

_MYSQL_FILE = re.compile(
    # The next file's MD5 is never taken for one that has none.
    r"\((?P<name>mysql-[A-Za-z0-9._-]+)\)(?:(?!\(mysql-).){0,600}?"
    r"MD5:\s*<code class=\"md5\">\s*(?P<md5>[0-9a-f]{32})\s*<",
    re.DOTALL | re.IGNORECASE,
)


_MYSQL_LIST = re.compile(r"<select\b[^>]*\b(?:name|id)=\"version\b[^>]*>.*?</select>", re.DOTALL | re.IGNORECASE)
#: `<option value="8.4">8.4.9 LTS</option>`; in the archive both are the version. Since 2026 it may be year and month.
_MYSQL_OPTION = re.compile(
    r"<option\b[^>]*\bvalue=\"(?P<id>[^\"]*)\"[^>]*>\s*"
    r"(?P<version>\d+\.\d+\.\d+|[2-9]\d\.(?:1[0-2]|[1-9]))(?![\w.])",
    re.IGNORECASE,
)


def mysql_versions(page: str, where: str) -> dict[str, str]:
    """What the addresses of a page call each version in its list; letters after the number (5.0.51a) were never kept up
    and are left out. SourceUnavailable when the page at `where` lists none."""
    listed = _MYSQL_LIST.search(page)
    versions = {o["version"]: o["id"] for o in _MYSQL_OPTION.finditer(listed[0] if listed else page)}
    if not versions:
        raise SourceUnavailable(f"{where}: the page lists no versions, so it is not, or no longer, what is read here")
    return versions


def mysql_files(page: str) -> dict[str, str]:
    """MD5 by file name, from the page of one version."""
    return {file["name"]: file["md5"].lower() for file in _MYSQL_FILE.finditer(html.unescape(page))}


def _mysql_listed(pages: VendorPages, address: str) -> dict[str, str]:
    return mysql_versions(pages.get(address), address)


def mysql_offers(pages: VendorPages) -> list[Offer]:
    versions = _mysql_listed(pages, f"{pages.address}/community/")
    if pages.current:
        try:
            versions |= _mysql_listed(pages, f"{pages.current}/downloads/mysql/")
        except SourceUnavailable as error:  # two sites: what the archive has can be had all the same
            pages.notes.append(f"the newest release of each line is not known: {error}")
    return [Offer(version, version) for version in versions]


def mysql_file(pages: VendorPages, wanted: WantedFile) -> VendorFile:
    get, version = pages.get, wanted.version
    if not pages.current or version in _mysql_listed(pages, f"{pages.address}/community/"):
        called, site, signatures = version, f"{pages.address}/community/?tpl=version", f"{pages.address}/gpg/"
        files_at = f"{pages.address}/get/p/{MYSQL_PRODUCT}/file"
    else:
        newest = _mysql_listed(pages, f"{pages.current}/downloads/mysql/")
        if version not in newest:
            raise SourceUnavailable(f"{version}: neither among the vendor's newest, {', '.join(newest)}, nor archived")
        called, site = newest[version], f"{pages.current}/downloads/mysql/?tpl=platform"
        signatures = f"{pages.current}/downloads/gpg/"
        files_at = f"{pages.current}/get/Downloads/MySQL-{line_of('mysql', version)}"
    files = mysql_files(get(f"{site}&os={MYSQL_LINUX}&version={quote(called)}&osva="))
    name, platform = choose(sorted(files), wanted)
    page = html.unescape(get(f"{signatures}?file={quote(name)}&p={MYSQL_PRODUCT}"))
    signature = re.search(r"-----BEGIN PGP SIGNATURE-----.*?-----END PGP SIGNATURE-----", page, re.DOTALL)
    return VendorFile(
        name=name,
        url=f"{files_at}/{quote(name)}",
        checksums={"md5": files[name]},
        signature=re.sub(r"<br ?/?>", "", signature[0]) if signature else "",
        platform=platform,
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


def mariadb_offers(pages: VendorPages) -> list[Offer]:
    base, get = pages.address, pages.get
    offers = []
    with _as_the_api_gives_it(base):
        for major in json.loads(get(f"{base}/"))["major_releases"]:
            status = str(major.get("release_status", "")).lower()
            if not any(word in status for word in MARIADB_UNFINISHED):
                releases = json.loads(get(f"{base}/{major['release_id']}/"))["releases"]
                for version, release in releases.items():
                    offers.append(Offer(version, version, _day(release.get("date_of_release"))))
    return offers


def mariadb_file(pages: VendorPages, wanted: WantedFile) -> VendorFile:
    version = wanted.version
    url = f"{pages.address}/{version}/"
    with _as_the_api_gives_it(url):
        data = json.loads(pages.get(url))["release_data"]
        files = {str(file["file_name"]): file for file in data[version]["files"]} if version in data else {}
        name, platform = choose(sorted(files), wanted)
        chosen = files[name]
        sums = chosen.get("checksum") or {}
        checksums = {name.removesuffix("sum"): str(value).lower() for name, value in sums.items() if value}
        return VendorFile(name, str(chosen["file_download_url"]), checksums, platform=platform)


# --- Postgres ------------------------------------------------------------------------------------------------


def postgres_offers(pages: VendorPages) -> list[Offer]:
    versions = re.findall(r"href=\"v(\d+(?:\.\d+)+)/?\"", pages.get(f"{pages.address}/"))
    return [Offer(version, version) for version in dict.fromkeys(versions)]


def checksum_beside(text: str, name: str) -> str:
    """The digest in a `sha256sum` file; Unverifiable when it is of another file or none."""
    for line in text.splitlines():
        match = re.fullmatch(r"([0-9a-fA-F]{64})(?:\s+\*?(\S+))?\s*", line)
        if match and match[2] in (None, name):
            return match[1].lower()
    raise Unverifiable(f"{name}: the file beside it holds no sha256 of it; it was not used")


def postgres_file(pages: VendorPages, wanted: WantedFile) -> VendorFile:
    folder = f"{pages.address}/v{wanted.version}"
    names = re.findall(r"href=\"([A-Za-z0-9._-]+)\"", pages.get(f"{folder}/"))
    name, platform = choose(names, wanted)
    url = f"{folder}/{name}"
    if f"{name}.sha256" not in names:
        raise Unverifiable(f"{name}: the vendor has no checksum beside it; it was not used")
    return VendorFile(name, url, {"sha256": checksum_beside(pages.get(f"{url}.sha256"), name)}, platform=platform)


OFFERS: Mapping[str, Callable[[VendorPages], list[Offer]]] = {
    "mysql": mysql_offers,
    "mariadb": mariadb_offers,
    "postgres": postgres_offers,
}
FILES: Mapping[str, Callable[[VendorPages, WantedFile], VendorFile]] = {
    "mysql": mysql_file,
    "mariadb": mariadb_file,
    "postgres": postgres_file,
}
