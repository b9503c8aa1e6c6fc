"""`from_pretrained` against a hub of this machine: a real huggingface_hub, talking HTTP to a server in this process."""

import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from tokbatch import sample

COMMIT = "0123456789abcdef0123456789abcdef01234567"

SCRIPT = """
import json, sys
from tokbatch import TokbatchError, Tokenizer
answers = []
for options in json.loads(sys.argv[1]):
    try:
        answers.append(repr(Tokenizer.from_pretrained(**options)))
    except TokbatchError as error:
        answers.append(f"{type(error).__name__}: {error}")
print(json.dumps(answers))
"""

REQUESTS = []


class Hub(http.server.BaseHTTPRequestHandler):
    """Knows some repositories, and keeps the requests for their files."""

    def do_HEAD(self):
        self.answer(b"")

    def do_GET(self):
        self.answer(sample.tokenizer_path().read_bytes())

    def answer(self, body):
        if self.path.startswith("/api/"):  # what the library wants to know for itself
            self.send_error(404)
            return
        REQUESTS.append((self.command, self.path, self.headers.get("authorization")))
        _, _, name, _, revision, _ = self.path.split("/", 5)
        faults = {
            "no-file": (404, "EntryNotFound"),
            "gated": (403, "GatedRepo"),
            "none": (401, "RepoNotFound"),
            "broken": (500, "a fault of the server"),
        }
        status, code = faults.get(name, (200, None))
        if name == "tokenizer" and revision not in ("main", "v1", COMMIT):
            status, code = 404, "RevisionNotFound"
        self.send_response(status)
        if code is not None:
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
        else:
            size = sample.tokenizer_path().stat().st_size
            for key, value in {"ETag": '"abc"', "X-Repo-Commit": COMMIT, "Content-Length": str(size)}.items():
                self.send_header(key, value)
        self.end_headers()
        if status == 200:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    REQUESTS.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(home, endpoint, environment=None, **options):
    (answer,), told = ask_all(home, endpoint, [options], environment)
    return answer, told


def ask_all(home, endpoint, questions, environment=None):
    """Load in a new interpreter, with a cache of its own; gives the answers, and what went to stderr."""
    variables = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    variables |= {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_XET": "1", **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, json.dumps(questions)],
        capture_output=True,
        text=True,
        env=variables,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_cache_offline_mode_and_tokens(hub, tmp_path):
    answer, _ = ask(tmp_path, hub, name="organisation/tokenizer", token="secret-word")
    assert answer.startswith("<Tokenizer BPE")
    assert {(path, token) for _, path, token in REQUESTS} == {
        ("/organisation/tokenizer/resolve/main/tokenizer.json", "Bearer secret-word")
    }
    # The second time nobody is asked, with a network or without.
    REQUESTS.clear()
    assert ask(tmp_path, hub, name="organisation/tokenizer")[0] == answer
    offline = {"HF_HUB_OFFLINE": "1"}
    assert ask(tmp_path, hub, offline, name="organisation/tokenizer")[0] == answer
    assert REQUESTS == []
    other, told = ask(tmp_path, hub, offline, name="organisation/other")
    assert "offline mode is on" in other
    assert "Retry" not in told
    # The token that is saved, or set in the environment, goes along by itself; a revision is asked for by name.
    assert ask(tmp_path, hub, {"HF_TOKEN": "hf_of_the_day"}, name="organisation/tokenizer", revision="v1")[0] == answer
    assert REQUESTS[0] == ("HEAD", "/organisation/tokenizer/resolve/v1/tokenizer.json", "Bearer hf_of_the_day")


REFUSED = {
    ("organisation/none", None): "the hub has no such repository, or it is private",
    ("organisation/gated", None): "the repository is gated",
    ("organisation/no-file", None): "the repository has no tokenizer.json",
    ("organisation/tokenizer", "v2"): "the repository has no revision 'v2'",
    ("organisation/broken", None): "it is not in the local cache, and the hub cannot be asked",
}


def test_what_the_hub_refuses_is_said_in_one_line(hub, tmp_path):
    answers, told = ask_all(tmp_path, hub, [{"name": name, "revision": revision} for name, revision in REFUSED])
    for ((name, _), message), answer in zip(REFUSED.items(), answers, strict=True):
        fact, hint = answer.split("\n")
        assert fact.startswith(f"InputError: {name}: no tokenizer: {message}")
        assert hint.startswith("hint: ")
    assert "Retry" not in told


def test_a_hub_that_is_not_there_is_told_at_once(tmp_path):
    answer, told = ask(tmp_path, "http://127.0.0.1:9", name="organisation/tokenizer")
    assert "the hub cannot be asked" in answer
    assert "Retry" not in told
