"""A vendor's site on this machine: the pages and archives of a few releases, and the ways in which sites fail.

The pages have the shape of the real ones (MariaDB's REST API, MySQL's archive pages, Postgres's directory lists),
reduced to what matters and the noise around it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


def archive(name: str, files: dict[str, str], compression: str = "gz") -> bytes:
    """A tar with everything below the directory `name`; text that begins with `#!` is a program."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{name}/{path}")
            info.mode = 0o755 if text.startswith("#!") else 0o644
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def server_program(version: str) -> str:
    return f"#!/bin/sh\necho 'mariadbd  Ver {version}-MariaDB for linux-systemd on x86_64'\n"


@dataclass
class Answer:
    """One response; the flags are the faults."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    """Close the connection after this many bytes of the body, once."""
    slow_seconds: float = 0.0
    """Wait before the body, once."""
    failures: int = 0
    """Answer 503 this many times first."""


class Site:
    """Routes by path (with the query when it is given), and what was asked."""

    def __init__(self) -> None:
        self.routes: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        self.address = ""

    def answer(self, target: str) -> Answer:
        return self.routes.get(target) or self.routes.get(urlsplit(target).path) or Answer(b"no such page", 404)

    # --- the vendors ---

    def mariadb(self, versions: dict[str, str], **wrong: str) -> None:
        """MariaDB's REST API with one archive a version; `wrong` replaces checksums by algorithm."""
        majors: dict[str, dict[str, object]] = {}
        for version, day in versions.items():
            major = version.rsplit(".", 1)[0]
            folder = f"mariadb-{version}-linux-systemd-x86_64"
            body = archive(folder, {"bin/mariadbd": server_program(version), "share/english/errmsg.sys": version})
            path = f"/rest-api/mariadb/{version}/{folder}.tar.gz"
            self.routes[path] = Answer(body, headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
            sums = {f"{name}sum": hashlib.new(name, body).hexdigest() for name in ("md5", "sha1", "sha256", "sha512")}
            sums |= {f"{name}sum": value for name, value in wrong.items()}
            files = [
                {"file_name": f"mariadb-{version}.tar.gz", "package_type": "gzipped tar file", "os": "Source",
                 "checksum": {"sha512sum": "00" * 64}, "file_download_url": self.address + "/never"},
                {"file_name": f"{folder}.tar.gz", "package_type": "gzipped tar file", "os": "Linux", "cpu": "x86_64",
                 "checksum": sums, "file_download_url": self.address + path},
            ]  # fmt: skip
            release = {"release_id": version, "date_of_release": day, "files": files}
            majors.setdefault(major, {})[version] = release
            self._json(f"/rest-api/mariadb/{version}/", {"release_data": {version: release}})
        for major, releases in majors.items():
            self._json(f"/rest-api/mariadb/{major}/", {"releases": releases})
        listed = [{"release_id": major, "release_status": "Stable"} for major in majors]
        listed.append({"release_id": "13.0", "release_status": "Alpha"})
        self._json("/rest-api/mariadb/", {"major_releases": listed})

    def _json(self, path: str, value: object) -> None:
        self.routes[path] = Answer(json.dumps(value).encode(), headers={"Content-Type": "application/json"})

    def mysql(
        self, version: str, body: bytes, signature: str, md5: str | None = None, platforms: tuple[str, ...] = ("2.12",)
    ) -> str:
        """MySQL's archive: the list, the page of one version, the signature page. The first archive's path."""
        options = "".join(f'<option value="{v}" >{v}</option>' for v in (version, "5.0.51a"))
        self.routes["/archives/community/"] = Answer(
            f'<select name="version" id="version">{options}</select><select name="os">'
            '<option value="24.10">24.10 Ubuntu</option><option value="10.15.1">10.15.1</option></select>'.encode()
        )
        names = [f"mysql-{version}-linux-glibc{platform}-x86_64.tar.xz" for platform in platforms]
        page = self._mysql_files(version, names, body, md5)
        self.routes[f"/archives/community/?tpl=version&os=2&version={version}&osva="] = Answer(page)
        armored = f"<pre>{signature}</pre>" if signature else "<p>No signature</p>"
        for name in names:
            self.routes[f"/archives/gpg/?file={name}&p=23"] = Answer(f"<html>{armored}</html>".encode())
            self.routes[f"/archives/get/p/23/file/{name}"] = Answer(body)
        return f"/archives/get/p/23/file/{names[0]}"

    def mysql_newest(self, releases: dict[str, str], version: str, body: bytes, signature: str) -> str:
        """MySQL's page of the newest releases: `releases` are what the list shows by what it is called in addresses, as
        `{"8.4": "8.4.9 LTS"}`; files of `version`. The archive's path."""
        options = "".join(f'\n  <option value="{key}" >{text}</option>' for key, text in releases.items())
        self.routes["/downloads/mysql/"] = Answer(
            f'<select name="version" id="version-mysql" onchange="x()">{options}\n</select>\n<select name="os">'
            '<option value="2">Linux - Generic</option><option value="3">9.9.9 Windows</option></select>'.encode()
        )
        called = next(key for key, text in releases.items() if text.split()[0] == version)
        name = f"mysql-{version}-linux-glibc2.28-x86_64.tar.xz"
        page = self._mysql_files(version, [name], body)
        self.routes[f"/downloads/mysql/?tpl=platform&os=2&version={called}&osva="] = Answer(page)
        self.routes[f"/downloads/gpg/?file={name}&p=23"] = Answer(f"<html><pre>{signature}</pre></html>".encode())
        path = f"/get/Downloads/MySQL-{'.'.join(version.split('.')[:2])}/{name}"
        self.routes["/cdn" + path] = Answer(body)
        self.routes[path] = Answer(b"", 302, {"Location": "/cdn" + path})
        return path

    @staticmethod
    def _mysql_files(version: str, names: list[str], body: bytes, md5: str | None = None) -> bytes:
        """The list of files as both sites show it; the debug build comes first, as it does there."""
        digest = md5 if md5 is not None else hashlib.md5(body).hexdigest()
        rows = [(f"mysql-{version}-linux-glibc2.12-x86_64-minimal-debug.tar.xz", "0" * 32)]
        rows += [(name, digest) for name in names]
        return "".join(
            f'<td class="sub-text">({name})</td>\n<td class="sub-text" colspan="4">\n'
            + (f'MD5: <code class="md5">{md5}</code> | <a class="signature">Signature</a></td>' if md5 else "</td>")
            for name, md5 in rows
        ).encode()

    def postgres(self, version: str, body: bytes, checksum: str | None = "right") -> str:
        """Postgres's directories. The archive's path."""
        name = f"postgresql-{version}.tar.bz2"
        self.routes["/pub/source/"] = Answer(f'<a href="../">../</a><a href="v{version}/">v{version}/</a>'.encode())
        names = [name, *([f"{name}.sha256"] if checksum is not None else [])]
        listing = "".join(f'<a href="{name}">{name}</a>' for name in names)
        self.routes[f"/pub/source/v{version}/"] = Answer(listing.encode())
        digest = hashlib.sha256(body).hexdigest() if checksum == "right" else checksum
        self.routes[f"/pub/source/v{version}/{name}.sha256"] = Answer(f"{digest}  {name}\n".encode())
        self.routes[f"/pub/source/v{version}/{name}"] = Answer(body)
        return f"/pub/source/v{version}/{name}"


@contextmanager
def served() -> Iterator[Site]:
    """The site, listening on the loopback address."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            site.asked.append((self.path, self.headers.get("Range", "")))
            answer = site.answer(self.path)
            if answer.failures:
                answer.failures -= 1
                self._send(Answer(b"busy", 503), b"busy", {})
                return
            if answer.slow_seconds:
                seconds, answer.slow_seconds = answer.slow_seconds, 0.0
                time.sleep(seconds)
            body, headers, status = answer.body, dict(answer.headers), answer.status
            asked = self.headers.get("Range", "")
            if asked and self.headers.get("If-Range") == headers.get("ETag"):
                first = int(asked.removeprefix("bytes=").rstrip("-"))
                headers["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
                body, status = body[first:], 206
            self._send(Answer(body, status, cut_at=answer.cut_at), body, headers)
            answer.cut_at = None

        def _send(self, answer: Answer, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(answer.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if answer.cut_at is None else body[: answer.cut_at])
            if answer.cut_at is not None:
                self.wfile.flush()
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
