"""The protocol's modules, as other packages of the broker import them."""

import subprocess
import sys

import pytest

from broker_impl.wire.messages import request_module, response_module
from broker_impl.wire.messages.apis import APIS, Api


@pytest.mark.parametrize("key", APIS)
def test_every_api_has_both_modules(key: int) -> None:
    """The request and response modules of an API agree with the table and with each other."""
    for module in (request_module(key), response_module(key)):
        said = Api(module.NAME, APIS[key].stem, module.VERSIONS, module.FLEXIBLE_FROM)
        assert (module.API_KEY, said) == (key, APIS[key])


def test_unknown_apis() -> None:
    """An API without schemas has no modules."""
    with pytest.raises(KeyError):
        request_module(68)


def test_modules_are_imported_when_asked_for() -> None:
    """Message modules are imported on first use: the framing alone imports none."""
    script = (
        "import sys, broker_impl.wire.framing; "
        "sys.exit(sum(name.endswith(('_request', '_response')) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
