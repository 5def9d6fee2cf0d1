import pytest

from broker_impl.config.logins import parse_login
from broker_impl.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_users_and_the_brokers_own_name() -> None:
    """Options may be quoted or not, on several lines, and quotes may be escaped."""
    text = f'{PLAIN} required\n  username="admin" password=p1\n  user_a="x \\"y\\"; z" user_b_c=s;'
    login = parse_login("name", "PLAIN", text)
    assert (login.username, login.password) == ("admin", "p1")
    assert login.users == {"a": 'x "y"; z', "b_c": "s"}
    assert parse_login("name", "SCRAM-SHA-512", f"{SCRAM} required ;").username == ""


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [
        ("PLAIN", ""),
        ("PLAIN", f'{PLAIN} required username="secret"'),
        ("PLAIN", f'{SCRAM} required username="secret";'),
        ("SCRAM-SHA-256", f'{PLAIN} required username="secret";'),
        ("PLAIN", f'{PLAIN} required username="secret;'),
        ("PLAIN", f"{PLAIN} required secret;"),
    ],
)
def test_an_error_does_not_repeat_the_password(mechanism: str, text: str) -> None:
    """A text of another form, or of the other mechanism's class, is refused without a quotation."""
    with pytest.raises(ConfigError, match=r"^name: ") as caught:
        parse_login("name", mechanism, text)
    assert "secret" not in str(caught.value)
