import asyncio

from broker_impl.errors import DirectoryFailed, StorageError
from broker_impl.node.tasks import Tasks


async def test_a_failure_is_told() -> None:
    """A task that fails is reported, a task that ends or is cancelled is not."""
    failures: list[BaseException] = []
    tasks = Tasks(failures.append)

    async def fail() -> None:
        raise KeyError("gone")

    tasks.start(fail())
    tasks.start(asyncio.sleep(0))
    forever = tasks.start(asyncio.sleep(1000))
    await asyncio.sleep(0.01)
    assert [repr(failure) for failure in failures] == ["KeyError('gone')"]
    assert len(tasks) == 1
    tasks.cancel()
    await tasks.ended()
    assert forever.cancelled()
    assert len(tasks) == 0


async def test_a_chore_that_fails_is_told() -> None:
    """A periodic action ends with its first failure, which is reported."""
    failures: list[BaseException] = []
    tasks = Tasks(failures.append)
    done: list[int] = []

    def action() -> None:
        done.append(1)
        if len(done) == 3:
            raise OSError("full")

    tasks.every(1, action)
    await tasks.ended()
    assert len(done) == 3
    assert len(failures) == 1


async def test_an_action_goes_on_after_the_failure_of_a_directory() -> None:
    """A failed data directory is reported, and does not end a periodic action (KIP-112)."""
    failures: list[BaseException] = []
    tasks = Tasks(failures.append)
    done: list[int] = []

    def action() -> None:
        done.append(1)
        if len(done) == 2:
            raise DirectoryFailed("/a")
        if len(done) == 4:
            raise StorageError("damaged")

    tasks.every(1, action)
    await tasks.ended()
    assert len(done) == 4
    assert [type(each) for each in failures] == [DirectoryFailed, StorageError]
