"""A helper container: created from the node image, it runs one command and is removed.

The node that the command is for therefore needs neither tools nor rights, and need not even run.
"""

import asyncio
from collections.abc import Mapping, Sequence

from harness.cluster.containers import container_spec
from harness.cluster.containers.container import ContainerState
from harness.cluster.containers.container_spec import Recipe
from harness.cluster.containers.engine import Engine, EngineError
from harness.cluster.polling import until

TIMEOUT_S = 15.0
NO_NETWORK, HOST_NETWORK = "none", "host"


def beside(container: str) -> str:
    """Return the network that belongs to the container with this id."""
    return f"container:{container}"


class HelperError(EngineError):
    """A command ended with a status other than 0; the message contains its output."""


class HelperContainers:
    """Runs commands, each in its own helper container."""

    def __init__(self, engine: Engine, image: str, labels: Mapping[str, str]) -> None:
        self._engine = engine
        self._image = image
        self._labels = labels

    async def run(
        self,
        command: Sequence[str],
        *,
        user: str,
        network: str = NO_NETWORK,
        capabilities: Sequence[str] = (),
        volumes: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command and return its output.

        ``network`` is that of a container (:func:`beside`), that of the engine's host, or none.
        ``volumes`` are the volumes that the command mounts, by path.
        """
        api = self._engine.client.api
        made = Recipe(
            image=self._image,
            command=command,
            labels=self._labels,
            user=user,
            capabilities=capabilities,
            network_mode=network,
            volumes=volumes or {},
        )
        identity = await self._engine.call(
            container_spec.create, self._engine.client, None, made, None
        )
        try:
            await self._engine.call(api.start, identity)
            async with asyncio.timeout(TIMEOUT_S):
                await until(lambda: self._has_ended(identity))
            state = await self._state(identity)
            said: bytes = await self._engine.call(api.logs, identity, stderr=state.status != 0)
        except TimeoutError:
            raise HelperError(f"{command[0]} did not end within {TIMEOUT_S:g} s") from None
        finally:
            await self._engine.call(api.remove_container, identity, force=True, v=True)
        text = said.decode(errors="replace").strip()
        if state.status != 0:
            raise HelperError(f"{command[0]} exited with {state.status}: {text}")
        return text

    async def _state(self, identity: str) -> ContainerState:
        found = await self._engine.call(self._engine.client.api.inspect_container, identity)
        return ContainerState.from_inspection(found["State"])

    async def _has_ended(self, identity: str) -> bool:
        state = await self._state(identity)
        return bool(state.life) and not state.is_up
