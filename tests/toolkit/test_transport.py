from __future__ import annotations

import pytest

from checkpoint_action.toolkit.transport import proxy_for, raw_target

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "no_proxy", "used"),
    [
        ("https://a.example/x", "", True),
        ("https://a.example/x", "*", False),
        ("https://a.example/x", "example", False),
        ("https://a.example/x", ".example", False),
        ("https://a.example/x", "*.example", False),
        ("https://a.example/x", "b.example, A.Example", False),
        ("https://a.example/x", "a.example:443", False),
        ("https://a.example/x", "a.example:8443", True),
        ("https://ba.example/x", "a.example", True),
        ("https://10.1.2.3/x", "10.0.0.0/8", False),
        ("https://11.1.2.3/x", "10.0.0.0/8, bad/net", True),
        ("https://[fd00::1]/x", "fd00::/8", False),
        ("https://127.0.0.1:8080/x", "", False),
        ("https://localhost/x", "", False),
        ("https://[::1]/x", "", False),
    ],
)
def test_no_proxy_is_read_as_the_official_toolkit_reads_it(url: str, no_proxy: str, used: bool) -> None:
    assert proxy_for(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}) == (PROXY if used else None)


def test_the_scheme_chooses_the_variable_and_lower_case_wins() -> None:
    env = {"HTTP_PROXY": "plain.example:1", "HTTPS_PROXY": "upper.example:2", "https_proxy": "lower.example:3"}
    assert proxy_for("http://a.example/", env) == "http://plain.example:1"
    assert proxy_for("https://a.example/", env) == "http://lower.example:3"
    assert proxy_for("https://a.example/", {}) is None


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h?q=1", "/?q=1"),
        ("http://h/a/../b%2f?x=%2b#part", "/a/../b%2f?x=%2b"),
        ("http://user@h:1/a?u=http://x/y", "/a?u=http://x/y"),
    ],
)
def test_the_target_is_the_urls_own_text(url: str, target: str) -> None:
    assert raw_target(url, absolute=False) == target
    assert raw_target(url, absolute=True) == url.partition("#")[0]
