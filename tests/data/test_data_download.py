from __future__ import annotations

import hashlib
import io
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from wrssl import progress
from wrssl.data.download import Address, fetch, fetch_first
from wrssl.errors import DataError

CONTENT = bytes(range(256)) * 3000  # 768,000 bytes
SHA = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Server:
    """Serves CONTENT at /file on 127.0.0.1; attributes change its manners."""

    def __init__(self):
        self.ranges, self.break_after, self.status, self.length, self.content = True, None, 200, True, CONTENT
        self.asked: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/file"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(self, request):
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if self.status != 200 or start >= len(self.content):
            request.send_error(self.status if self.status != 200 else 416)
            return
        body = self.content[start:]
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if self.length:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body if self.break_after is None else body[: self.break_after])

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    yield server
    server.close()


@pytest.mark.parametrize("checksum", [{"sha256": SHA}, {"md5": MD5}, {"sha256": SHA, "md5": MD5, "size": len(CONTENT)}])
def test_a_file_arrives(server, tmp_path, checksum):
    path = tmp_path / "new" / "folder" / "x.bin"
    assert fetch(server.url, path, **checksum) == path
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["x.bin"]
    fetch(server.url, path, **checksum)
    assert len(server.asked) == 1  # the right file is left alone


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_transfer_goes_on(server, tmp_path, ranges):
    server.ranges, server.break_after = ranges, 300_000
    path = tmp_path / "x.bin"
    with pytest.raises(DataError, match=r"broke off after 300000 of 768000 bytes; try again"):
        fetch(server.url, path, sha256=SHA)
    assert not path.exists()
    assert (tmp_path / "x.bin.part").stat().st_size == 300_000
    server.break_after = None
    fetch(server.url, path, sha256=SHA)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]
    assert not (tmp_path / "x.bin.part").exists()


def test_a_part_that_is_complete_already_or_too_long(server, tmp_path):
    for part in (CONTENT, CONTENT + b"more"):
        (tmp_path / "x.bin.part").write_bytes(part)
        fetch(server.url, tmp_path / "x.bin", md5=MD5)
        assert (tmp_path / "x.bin").read_bytes() == CONTENT
        (tmp_path / "x.bin").unlink()


def test_a_stale_part_is_fetched_again_from_the_start(server, tmp_path):
    (tmp_path / "x.bin.part").write_bytes(b"something else")
    fetch(server.url, tmp_path / "x.bin", sha256=SHA)
    assert (tmp_path / "x.bin").read_bytes() == CONTENT
    assert server.asked == ["bytes=14-", None]


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DataError, match="wrong checksum"):
        fetch(server.url, tmp_path / "x.bin", sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.bin").write_bytes(b"the user's")
    with pytest.raises(DataError, match="wrong checksum"):
        fetch(server.url, tmp_path / "x.bin", sha256=SHA, md5="0" * 32)
    assert (tmp_path / "x.bin").read_bytes() == b"the user's"


def test_wrong_sizes(server, tmp_path):
    with pytest.raises(DataError, match="has 768000 bytes and should have 5"):
        fetch(server.url, tmp_path / "x.bin", sha256=SHA, size=5)
    server.length = False  # no Content-Length: as much as it likes
    with pytest.raises(DataError, match="sends more than 5 bytes"):
        fetch(server.url, tmp_path / "x.bin", sha256=SHA, size=5)
    assert list(tmp_path.iterdir()) == []
    fetch(server.url, tmp_path / "x.bin", sha256=SHA)
    assert (tmp_path / "x.bin").read_bytes() == CONTENT


def test_sentences(server, tmp_path):
    server.status = 404
    with pytest.raises(DataError, match=r"answers 404 .*put a copy at .*x\.bin by hand"):
        fetch(server.url, tmp_path / "x.bin", md5=MD5)
    with pytest.raises(DataError, match="no http or https address"):
        fetch("file:///etc/hostname", tmp_path / "x.bin", md5=MD5)
    with pytest.raises(DataError, match="no checksum"):
        fetch(server.url, tmp_path / "x.bin")
    (tmp_path / "file").write_bytes(b"")
    server.status = 200
    with pytest.raises(DataError, match="cannot be written"):
        fetch(server.url, tmp_path / "file" / "x.bin", md5=MD5)


def test_no_server(server, tmp_path):
    server.close()
    with pytest.raises(DataError, match=r"could not be fetched .*try again"):
        fetch(server.url, tmp_path / "x.bin", md5=MD5)


def test_mirrors(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        missing = f"http://127.0.0.1:{closed.getsockname()[1]}/file"
    assert fetch_first(Address((missing, server.url), MD5), tmp_path / "x.bin").read_bytes() == CONTENT
    with pytest.raises(DataError, match="wrong checksum"):
        fetch_first(Address((missing, server.url), "0" * 32), tmp_path / "y.bin")


def test_the_bar_is_for_terminals_only(server, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress, "PATIENCE", 0)
    quiet, loud = io.StringIO(), Terminal()
    for stream, name in ((quiet, "quiet.bin"), (loud, "loud.bin")):
        monkeypatch.setattr(sys, "stderr", stream)
        fetch(server.url, tmp_path / name, md5=MD5)
    assert quiet.getvalue() == ""
    assert "loud.bin" in loud.getvalue()
