"""Vendors' sites on a real local server: their pages are understood, and what goes wrong with them is told apart."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from history.settings import read_model
from history.versions import line_of, version_key
from runners.errors import DigestMismatch, SourceUnavailable, Unverifiable
from runners.releases import web as web_module
from runners.releases.manifest import Manifest, manifest_path
from runners.releases.sources import KeyEra, Offer, TarballSettings
from runners.releases.tarball import TarballSource
from runners.releases.vendors import WantedFile, checksum_beside, choose, mysql_files, mysql_versions
from runners.releases.web import Web
from tests.runners.releases.vendorsite import Answer, Site, archive

MYSQL_FILES = (r"mysql-{version}-linux-glibc2\.17-x86_64\.tar\.xz", r"mysql-{version}-linux-glibc2\.12-x86_64\.tar\.xz")
SERVER = {"bin/mysqld": "#!/bin/sh\necho mysqld\n"}


def mariadb(site: Site, folder: Path) -> TarballSource:
    site.mariadb({"10.11.9": "2024-08-08"})
    return source(site, folder, "mariadb", "/rest-api/mariadb", (r"mariadb-{version}-linux-systemd-x86_64\.tar\.gz",))


def source(site: Site, folder: Path, vendor: Any, address: str, files: tuple[str, ...], **more: Any) -> TarballSource:
    settings = TarballSettings(
        name="tarball", kind="tarball", vendor=vendor, address=f"{site.address}{address}", files=files, **more
    )
    return TarballSource(settings, folder, folder)


def path_of(site: Site) -> str:
    return next(path for path in site.routes if path.endswith(".tar.gz"))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "READ_SECONDS", 0.5)
    monkeypatch.setattr(web_module, "FIRST_WAIT_SECONDS", 0.01)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "into").mkdir()
    return tmp_path / "into"


# --- MariaDB -------------------------------------------------------------------------------------------------


def test_mariadb_lists_finished_lines_with_dates_and_is_checked_by_sha512(
    site: Site, tmp_path: Path, into: Path
) -> None:
    tarball = mariadb(site, tmp_path)
    [offer] = tarball.offers()
    assert (offer.version, str(offer.released)) == ("10.11.9", "2024-08-08")
    download = tarball.download(offer, into)
    body = site.routes[path_of(site)].body
    assert download.upstream == f"sha512:{hashlib.sha512(body).hexdigest()}"
    assert download.sha256 == hashlib.sha256(body).hexdigest()
    assert download.size == len(body)
    tarball.unpack(download.parts, tmp_path / "tree", tmp_path / "tree")
    assert (tmp_path / "tree" / "bin" / "mariadbd").is_file()


def test_a_wrong_checksum_names_both_values(site: Site, tmp_path: Path, into: Path) -> None:
    tarball = mariadb(site, tmp_path)
    site.mariadb({"10.11.9": "2024-08-08"}, sha512="ab" * 64)
    with pytest.raises(DigestMismatch, match="ab" * 64):
        tarball.download(Offer("10.11.9", "10.11.9"), into)


def test_a_web_page_in_place_of_the_archive_is_said_to_be_one(site: Site, tmp_path: Path, into: Path) -> None:
    tarball = mariadb(site, tmp_path)
    site.routes[path_of(site)] = Answer(b"<html>Please log in</html>")
    with pytest.raises(SourceUnavailable, match=r"no archive.*<html>Please log in"):
        tarball.download(Offer("10.11.9", "10.11.9"), into)


def test_a_missing_archive_and_missing_pages_name_address_and_status(site: Site, tmp_path: Path, into: Path) -> None:
    tarball = mariadb(site, tmp_path)
    del site.routes[path_of(site)]
    with pytest.raises(SourceUnavailable, match=r"/rest-api/mariadb/10\.11\.9/.*gz: the server answers 404"):
        tarball.download(Offer("10.11.9", "10.11.9"), into)
    site.routes["/rest-api/mariadb/"] = Answer(b"<html>maintenance</html>")
    with pytest.raises(SourceUnavailable, match="not what the API gives"):
        tarball.offers()


@pytest.mark.parametrize(
    ("releases", "said"),
    [
        ({"10.11.9": {"date_of_release": "0000-00-00"}}, ""),
        ({"10.11.9": None}, "not what the API gives"),
        ([], "not what"),
    ],
)
def test_an_answer_of_another_shape_is_an_unavailable_source(
    site: Site, tmp_path: Path, releases: object, said: str
) -> None:
    """And no error that ends the discovery of every other source."""
    tarball = mariadb(site, tmp_path)
    site.routes["/rest-api/mariadb/10.11/"] = Answer(json.dumps({"releases": releases}).encode())
    if said:
        with pytest.raises(SourceUnavailable, match=said):
            tarball.offers()
    else:
        assert tarball.offers() == [Offer("10.11.9", "10.11.9")], "only the day is not known"


def test_a_truncated_body_is_continued_where_it_broke_off(site: Site, tmp_path: Path, into: Path) -> None:
    tarball = mariadb(site, tmp_path)
    answer = site.routes[path_of(site)]
    answer.cut_at = len(answer.body) // 2
    tarball.download(Offer("10.11.9", "10.11.9"), into)
    ranges = [asked for path, asked in site.asked if path == path_of(site)]
    assert ranges == ["", f"bytes={len(answer.body) // 2}-"]


def test_without_a_validator_a_truncated_body_is_fetched_from_its_beginning(
    site: Site, tmp_path: Path, into: Path
) -> None:
    tarball = mariadb(site, tmp_path)
    answer = site.routes[path_of(site)]
    answer.headers.clear()
    answer.cut_at = len(answer.body) // 2
    tarball.download(Offer("10.11.9", "10.11.9"), into)
    assert [asked for path, asked in site.asked if path == path_of(site)] == ["", ""]


def test_another_file_of_the_same_name_is_not_glued_to_the_first_half(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "ATTEMPTS", 1)
    site.routes["/f"] = Answer(b"a" * 1000, headers={"ETag": '"one"'}, cut_at=400)
    web = Web(tmp_path / "partial")
    with pytest.raises(SourceUnavailable):
        web.download(f"{site.address}/f", tmp_path / "f")
    assert not (tmp_path / "f").exists(), "a file appears only when it is complete"
    site.routes["/f"] = Answer(b"b" * 1000, headers={"ETag": '"two"'})
    web.download(f"{site.address}/f", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"b" * 1000


def test_a_slow_or_busy_server_is_asked_again_and_given_up_in_the_end(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "READ_SECONDS", 0.2)
    monkeypatch.setattr(web_module, "ATTEMPTS", 3)
    web = Web(tmp_path / "partial")
    site.routes["/slow"] = Answer(b"late", slow_seconds=1.0)
    site.routes["/busy"] = Answer(b"ready", failures=2)
    site.routes["/down"] = Answer(b"", failures=99)
    assert web.text(f"{site.address}/slow") == "late"
    assert web.text(f"{site.address}/busy") == "ready"
    with pytest.raises(SourceUnavailable, match="503"):
        web.text(f"{site.address}/down")
    assert sum(path == "/down" for path, _ in site.asked) == 3


def test_redirects_are_followed_unless_they_give_up_encryption(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.routes["/here"] = Answer(b"", 302, {"Location": "/there"})
    site.routes["/there"] = Answer(b"text")
    web = Web(tmp_path / "partial")
    assert web.text(f"{site.address}/here") == "text"

    asked: list[str] = []

    def answer(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        target = {"/a": "/b", "/b": "http://vendor.example/c"}.get(request.url.path)
        return httpx.Response(302, headers={"Location": target}) if target else httpx.Response(200, text="plain")

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", answer)
    with pytest.raises(SourceUnavailable, match="not encrypted"):
        web.text("https://vendor.example/a")
    assert asked == ["https://vendor.example/a", "https://vendor.example/b"], "nothing is asked in the clear"


def test_no_network_at_all_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "FIRST_WAIT_SECONDS", 60)
    with pytest.raises(SourceUnavailable, match=r"vendor\.invalid"):
        Web(tmp_path / "partial").text("https://vendor.invalid/")


# --- Postgres ------------------------------------------------------------------------------------------------


def test_postgres_is_checked_by_the_file_beside_it(site: Site, tmp_path: Path, into: Path) -> None:
    body = archive("postgresql-17.2", {"configure": "#!/bin/sh\n"}, "bz2")
    site.postgres("17.2", body)
    tarball = source(site, tmp_path, "postgres", "/pub/source/", (r"postgresql-{version}\.tar\.bz2",))
    assert [offer.version for offer in tarball.offers()] == ["17.2"]
    assert tarball.download(Offer("17.2", "17.2"), into).upstream == f"sha256:{hashlib.sha256(body).hexdigest()}"
    site.postgres("17.2", body, checksum=None)
    with pytest.raises(Unverifiable, match="no checksum beside it"):
        tarball.download(Offer("17.2", "17.2"), into)
    site.postgres("17.2", body, checksum="cd" * 32)
    with pytest.raises(DigestMismatch, match="cd" * 32):
        tarball.download(Offer("17.2", "17.2"), into)
    with pytest.raises(Unverifiable):
        checksum_beside(f"{'ab' * 32}  another.tar.bz2\n", "postgresql-17.2.tar.bz2")


# --- MySQL ---------------------------------------------------------------------------------------------------


class Key:
    """A signing key made for the test."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        self._environment = {**os.environ, "GNUPGHOME": str(home)}
        self._gpg("--passphrase", "", "--quick-generate-key", "vendor@example.org", "rsa2048", "sign", "never")
        listed = self._gpg("--with-colons", "--list-keys").decode()
        self.fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
        self.public = self._gpg("--armor", "--export").decode()

    def _gpg(self, *arguments: str, data: bytes | None = None) -> bytes:
        command = ["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(command, input=data, env=self._environment, check=True, capture_output=True).stdout

    def sign(self, data: bytes) -> str:
        return self._gpg("--armor", "--detach-sign", data=data).decode()

    def close(self) -> None:
        subprocess.run(["gpgconf", "--kill", "all"], env=self._environment, check=False)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Key, Key]]:
    folder = tmp_path_factory.mktemp("k")
    pair = Key(folder / "1"), Key(folder / "2")
    yield pair
    for key in pair:
        key.close()


def mysql(site: Site, folder: Path, *eras: tuple[Key, str, str]) -> TarballSource:
    for number, (key, _, _) in enumerate(eras):
        (folder / f"{number}.asc").write_text(key.public)
    return source(
        site, folder, "mysql", "/archives", MYSQL_FILES,
        keys=tuple(
            KeyEra(file=f"{number}.asc", fingerprint=key.fingerprint, releases=((first, last),))
            for number, (key, first, last) in enumerate(eras)
        ),
    )  # fmt: skip


def test_mysql_is_checked_by_md5_and_by_the_key_of_its_time(
    site: Site, tmp_path: Path, into: Path, keys: tuple[Key, Key]
) -> None:
    old, new = keys
    body = archive("mysql-8.0.30", SERVER, "xz")
    tarball = mysql(site, tmp_path, (old, "8.0.0", "8.0.27"), (new, "8.0.28", "8.0.35"))

    site.mysql("8.0.30", body, new.sign(body))
    assert [offer.version for offer in tarball.offers()] == ["8.0.30"]
    download = tarball.download(Offer("8.0.30", "8.0.30"), into)
    assert download.signature == f"good: {new.fingerprint}"
    assert download.upstream.startswith("md5:") and new.fingerprint[-16:] in download.verified

    site.mysql("8.0.30", body, old.sign(body))
    with pytest.raises(Unverifiable, match="signature is not valid"):
        tarball.download(Offer("8.0.30", "8.0.30"), into)
    site.mysql("8.0.30", body, new.sign(b"something else"))
    with pytest.raises(Unverifiable, match="signature is not valid"):
        tarball.download(Offer("8.0.30", "8.0.30"), into)
    site.mysql("8.0.30", body, "")
    with pytest.raises(Unverifiable, match="md5 and no signature"):
        tarball.download(Offer("8.0.30", "8.0.30"), into)
    site.mysql("8.0.30", body, new.sign(body), md5="0" * 32)
    with pytest.raises(DigestMismatch, match="0" * 32):
        tarball.download(Offer("8.0.30", "8.0.30"), into)
    site.mysql("8.0.30", body, new.sign(body), md5="")
    with pytest.raises(SourceUnavailable, match="none of the vendor's"):
        tarball.download(Offer("8.0.30", "8.0.30"), into)
    site.mysql("8.4.0", body, new.sign(body), platforms=("2.17",))
    with pytest.raises(Unverifiable, match="names no key"):
        tarball.download(Offer("8.4.0", "8.4.0"), into)


def test_mysql_pages_are_read_as_they_are() -> None:
    archive_page = (
        '<select name="os"><option value="24.10">24.10</option></select>'
        '<select name="version" id="version"><option value="9.7.1" >9.7.1</option>\n'
        '<option value="8.0.29" selected>8.0.29</option><option value="5.0.51a" >5.0.51a</option></select>'
    )
    assert mysql_versions(archive_page, "here") == {"9.7.1": "9.7.1", "8.0.29": "8.0.29"}
    newest = (
        '<select class="x" name="version" id="version-0">\n<option value="26.7"  selected>26.7.1 Innovation</option>\n'
        '<option value="26.10">26.10 Innovation</option><option value="8.4">\n8.4.9 LTS\n</option></select>'
    )
    assert mysql_versions(newest, "here") == {"26.7.1": "26.7", "26.10": "26.10", "8.4.9": "8.4"}
    with pytest.raises(SourceUnavailable, match="here: the page lists no versions"):
        mysql_versions("<html>Access denied</html>", "here")
    page = '(mysql-1-a.tar.gz)</td> (mysql-1-b.tar.gz)</td><td>MD5: <code class="md5">' + "AB" * 16 + "</code>"
    assert mysql_files(page) == {"mysql-1-b.tar.gz": "ab" * 16}, "a digest belongs to the file right before it"


def newest_and_archive(site: Site, folder: Path, key: Key) -> TarballSource:
    """A source of both of MySQL's sites; the archive has 8.4.8."""
    (folder / "key.asc").write_text(key.public)
    site.mysql("8.4.8", b"archived", key.sign(b"archived"), platforms=("2.28",))
    return source(
        site, folder, "mysql", "/archives", (r"mysql-{version}-{platform}-x86_64\.tar\.xz",),
        current=site.address, platforms={"*": ("linux-glibc2.28", "linux-glibc2.12")},
        keys=(KeyEra(file="key.asc", fingerprint=key.fingerprint, releases=(("8.4.0", "99.12.999"),)),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "listed"),
    [
        ("8.4.9", {"9.7": "9.7.4 LTS", "8.4": "8.4.9 LTS", "8.0": "8.0.46"}),
        ("26.7.1", {"26.7": "26.7.1 Innovation", "9.7": "9.7.4 LTS", "8.4": "8.4.9 LTS", "8.0": "8.0.46"}),
        ("26.7", {"26.7": "26.7 Innovation", "8.4": "8.4.9 LTS"}),
    ],
)
def test_the_newest_of_each_line_comes_from_the_page_that_has_it(
    site: Site, tmp_path: Path, into: Path, keys: tuple[Key, Key], version: str, listed: dict[str, str]
) -> None:
    key, other = keys
    tarball = newest_and_archive(site, tmp_path, key)
    path = site.mysql_newest(listed, version, b"newest", key.sign(b"newest"))
    expected = {"8.4.8", *(text.split()[0] for text in listed.values())}
    assert {offer.version for offer in tarball.offers()} == expected
    download = tarball.download(Offer(version, version), into)
    assert download.upstream == f"md5:{hashlib.md5(b'newest').hexdigest()}"
    assert (download.platform, download.signature) == ("linux-glibc2.28", f"good: {key.fingerprint}")
    assert path in [asked for asked, _ in site.asked], "fetched where it is offered, following to where it is kept"
    site.mysql_newest(listed, version, b"newest", other.sign(b"newest"))
    with pytest.raises(Unverifiable, match="signature is not valid"):
        tarball.download(Offer(version, version), into)


def test_what_came_before_the_newest_still_comes_from_the_archive(
    site: Site, tmp_path: Path, into: Path, keys: tuple[Key, Key]
) -> None:
    key = keys[0]
    tarball = newest_and_archive(site, tmp_path, key)
    site.mysql_newest({"8.4": "8.4.9 LTS"}, "8.4.9", b"newest", key.sign(b"newest"))
    assert tarball.download(Offer("8.4.8", "8.4.8"), into).parts[0].size == len(b"archived")
    with pytest.raises(SourceUnavailable, match=r"8\.4\.7: neither among the vendor's newest, 8\.4\.9, nor archived"):
        tarball.download(Offer("8.4.7", "8.4.7"), into)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"<html>We have redesigned our site</html>"), "/downloads/mysql/: the page lists no versions"),
        (Answer(b"no programs, please", 403), "/downloads/mysql/: the server answers 403"),
    ],
)
def test_the_archive_is_read_where_the_page_of_the_newest_is_not_to_be_had_and_that_is_said(
    site: Site, tmp_path: Path, keys: tuple[Key, Key], answer: Answer, said: str
) -> None:
    tarball = newest_and_archive(site, tmp_path, keys[0])
    site.routes["/downloads/mysql/"] = answer
    assert [offer.version for offer in tarball.offers()] == ["8.4.8"]
    [note] = tarball.notes
    assert said in note and "the newest release of each line is not known" in note
    site.routes["/archives/community/"] = answer
    with pytest.raises(SourceUnavailable, match="/archives/community/"):
        tarball.offers()


def test_the_first_pattern_that_fits_chooses_the_file() -> None:
    names = ["mysql-8.0.30-linux-glibc2.12-x86_64.tar.xz", "mysql-8.0.30-linux-glibc2.17-x86_64-minimal.tar.xz"]
    assert choose(names, WantedFile("8.0.30", MYSQL_FILES)) == (names[0], "")
    with pytest.raises(SourceUnavailable, match=r"8\.0\.3: none"):
        choose(names, WantedFile("8.0.3", MYSQL_FILES))


@pytest.mark.parametrize(
    ("dbms", "version", "offered", "platform"),
    [
        # Of the line 8.0 one build reaches furthest; where it ends the next is taken, and the pin says so.
        ("mysql", "8.0.11", ("2.12",), "linux-glibc2.12"),
        ("mysql", "8.0.35", ("2.12", "2.17", "2.28"), "linux-glibc2.12"),
        ("mysql", "8.0.46", ("2.17", "2.28"), "linux-glibc2.17"),
        ("mysql", "8.4.0", ("2.17", "2.28"), "linux-glibc2.28"),
        ("mysql", "9.7.4", ("2.17", "2.28"), "linux-glibc2.28"),
        ("mysql", "26.7.1", ("2.28",), "linux-glibc2.28"),
        ("mysql", "5.7.44", ("2.12",), "linux-glibc2.12"),
        ("mysql", "5.6.10", ("2.5",), "linux-glibc2.5"),
    ],
)
def test_a_line_keeps_one_build_as_long_as_its_vendor_has_it(
    configs: Path, dbms: str, version: str, offered: tuple[str, ...], platform: str
) -> None:
    tarball = tarball_of(configs, dbms)
    names = [f"mysql-{version}-linux-glibc{libc}-x86_64.tar.xz" for libc in offered]
    names += [name.replace(".tar", "-minimal.tar") for name in names] + [f"mysql-{version}-linux-i686.tar.gz"]
    wanted = WantedFile(version, tarball.files, tarball.platforms_of(line_of(dbms, version)))
    assert choose(sorted(names), wanted) == (f"mysql-{version}-{platform}-x86_64.tar.xz", platform)


def test_mariadbs_build_for_systemd_is_taken_before_the_other(configs: Path) -> None:
    tarball = tarball_of(configs, "mariadb")
    wanted = WantedFile("10.6.25", tarball.files, tarball.platforms_of("10.6"))
    both = [f"mariadb-10.6.25-{platform}-x86_64.tar.gz" for platform in ("linux", "linux-systemd")]
    assert choose(both, wanted)[1] == "linux-systemd" and choose(both[:1], wanted)[1] == "linux"


def test_what_is_pinned_is_fetched_again_as_that_build(
    site: Site, tmp_path: Path, into: Path, keys: tuple[Key, Key]
) -> None:
    """Whatever the vendor or the order of preference came to since."""
    tarball = newest_and_archive(site, tmp_path, keys[0])
    site.mysql("8.4.8", b"archived", keys[0].sign(b"archived"), platforms=("2.12", "2.28"))
    assert tarball.download(Offer("8.4.8", "8.4.8"), into).platform == "linux-glibc2.28"
    assert tarball.download(Offer("8.4.8", "8.4.8", platform="linux-glibc2.12"), into).platform == "linux-glibc2.12"


def test_patterns_with_a_platform_need_platforms() -> None:
    with pytest.raises(ValueError, match="platforms says which there are"):
        TarballSettings(name="t", kind="tarball", vendor="mysql", address="https://x.example", files=("{platform}",))


def tarball_of(configs: Path, dbms: str) -> TarballSettings:
    """The committed source of the vendor's archives."""
    sources = read_model(manifest_path(configs, dbms), Manifest).source
    return next(source for source in sources if isinstance(source, TarballSettings))


@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("5.7.36", "2003"), ("5.7.44", "2022"), ("8.0.27", "2003"), ("8.0.35", "2022"), ("8.0.46", "2023"),
        ("8.2.0", "2022"), ("8.4.9", "2023"), ("9.7.4", "2023"), ("26.7", "2023"), ("26.7.1", "2023"),
        ("26.10.0", "2023"),
    ],
)  # fmt: skip
def test_every_release_has_the_key_of_its_time(configs: Path, version: str, key: str) -> None:
    eras = tarball_of(configs, "mysql").keys
    place = version_key("mysql", version)
    fitting = [
        era.file
        for era in eras
        if any(version_key("mysql", first) <= place <= version_key("mysql", last) for first, last in era.releases)
    ]
    assert fitting == [f"keys/mysql-{key}.asc"]


def test_the_committed_keys_are_the_ones_the_manifest_names(configs: Path, tmp_path: Path) -> None:
    eras = tarball_of(configs, "mysql").keys
    assert len(eras) == 3
    for era in eras:
        shown = subprocess.run(
            ["gpg", "--homedir", str(tmp_path), "--batch", "--with-colons", "--show-keys",
             str(configs / "dbms" / "mysql" / era.file)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert f":{era.fingerprint}:" in shown
