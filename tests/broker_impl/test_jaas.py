"""Logins in the form of JAAS files."""

import pytest

from broker_impl import jaas
from broker_impl.errors import ConfigError

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
FILE = f"""
// The login of Kafka's brokers, which is "not" ours;
Client {{
  {MODULE} required username="x" password="y";
}};
/* Server {{ other.Module required; }}; */
Server {{
  {MODULE} required
    user_super="a }}; // b"
    user_bob=plain user_="nameless" debug="true";
}};
"""


def test_a_section_of_a_file() -> None:
    """A section is found between comments and others; values may have any characters."""
    found = jaas.section(FILE, "Server", MODULE)
    assert found.users == {"super": "a }; // b", "bob": "plain"}
    assert found.options["debug"] == "true"
    assert jaas.section(FILE, "Client", MODULE).options == {"username": "x", "password": "y"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no section Server"),
        ("Client { a.B required; };", "there is no section Server"),
        ("Server { a.B required; }", "each section must have the form"),
        ("Server { a.B required x=1; };", f"must have the form {MODULE} required"),
        (f"Server {{ {MODULE} optional; }};", f"must have the form {MODULE} required"),
        (f"Server {{ {MODULE} required user_a; }};", "each option must have the form"),
        ("password=geheim", "each section must have the form"),
    ],
)
def test_another_form_is_refused(text: str, why: str) -> None:
    """The error names the form, and does not repeat the text, which has passwords."""
    with pytest.raises(ConfigError) as refusal:
        jaas.section(text, "Server", MODULE)
    assert str(refusal.value).startswith(why)
    assert "geheim" not in str(refusal.value)
