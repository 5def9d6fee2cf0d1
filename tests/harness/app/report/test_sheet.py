from pathlib import Path

import pytest

from harness.app.report import sheet


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("acks=1, retries=3", "acks=1, retries=3"),
        ("ssl.key.password=hunter2", f"ssl.key.password={sheet.MASK}"),
        ("ssl.key.pem=MIIE, acks=1", f"ssl.key.pem={sheet.MASK}, acks=1"),
        ("SSL.Key.PASSWORD = hunter2, acks=1", f"SSL.Key.PASSWORD = {sheet.MASK}, acks=1"),
        (
            'sasl.jaas.config=Plain required password="hunter2"; · acks=1',
            f"sasl.jaas.config={sheet.MASK} · acks=1",
        ),
        ("no password was asked for", "no password was asked for"),
    ],
)
def test_the_value_of_a_secret_setting_is_masked(text: str, shown: str) -> None:
    """The value of a secret setting in a text is masked; its name and other settings are not."""
    assert sheet.masked(text) == shown


def test_whatever_a_template_prints_is_masked_and_escaped() -> None:
    """Every template masks and escapes plain strings by default."""
    template = sheet.environment().from_string("<i>{{ a }}</i> {{ b | upper }}")
    assert template.render(a="<b>x.secret=hunter2", b="y.password=hunter2") == (
        f"<i>&lt;b&gt;x.secret={sheet.MASK}</i> Y.PASSWORD={sheet.MASK}"
    )


def test_a_page_appears_whole(tmp_path: Path) -> None:
    """A page is replaced atomically, and no temporary file is left."""
    page = tmp_path / "index.html"
    page.write_text("old")
    assert sheet.write(page, "néw") == page
    assert page.read_text(encoding="utf-8") == "néw"
    assert list(tmp_path.iterdir()) == [page]
