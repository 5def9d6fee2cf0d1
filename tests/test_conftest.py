"""Tests that cannot run are named, and tests that are not measured are not traced."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).with_name("conftest.py")


def test_what_cannot_run_is_told_in_one_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that need a missing program are skipped, with a visible line for each program."""
    monkeypatch.setenv("PATH", "")
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
        "markers =\n  docker: engine\n  ground_truth: data\n  real_kafka: jars\n"
    )
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.docker
        @pytest.mark.parametrize("number", range(3))
        def test_container(number): raise AssertionError("ran")

        @pytest.mark.real_kafka
        def test_release(): raise AssertionError("ran")

        def test_other(): pass
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, skipped=4)
    result.stdout.fnmatch_lines(["*not run on this machine*", "*1 skipped: real_kafka: *mvn*"])
    result.stdout.fnmatch_lines(["*3 skipped: docker: no container*"])
    assert "1 passed, 4 skipped" in result.outlines[-1]


def test_only_fast_tests_of_the_measured_code_are_traced(pytester: pytest.Pytester) -> None:
    """Other tests run without coverage: what they reach by the way says nothing about them."""
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nmarkers =\n"
        "  docker: engine\n  ground_truth: data\n  real_kafka: jars\n  slow: time\n  spark: JVM\n"
        "  cluster: processes\n"
    )
    pytester.makeconftest(CONFTEST.read_text())
    tests = """
        import pytest

        def test_fast(request): assert request.node.get_closest_marker("no_cover") is ???

        @pytest.mark.slow
        def test_slow(request): assert request.node.get_closest_marker("no_cover")
        """
    for folder, is_marked in (("checkers", "None"), ("harness", "not None")):
        pytester.mkdir(folder)
        text = dedent(tests).replace("is ???", f"is {is_marked}")
        (pytester.path / folder / f"test_{folder}.py").write_text(text)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=4)


@pytest.mark.xdist_group("cluster")
def test_groups_of_tests_are_known_to_xdist(request: pytest.FixtureRequest) -> None:
    """Tests of a group run on one worker, one after another: xdist names the group in their ids."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("only a worker of xdist has groups")
    assert request.node.nodeid.endswith("@cluster")


def test_nothing_is_traced_where_coverage_does_not_count(request: pytest.FixtureRequest) -> None:
    """A test outside of the traced folders runs without coverage's trace, also in a worker."""
    assert request.node.get_closest_marker("no_cover")
    assert sys.gettrace() is None


def test_each_module_begins_with_few_objects_to_look_at(pytester: pytest.Pytester) -> None:
    """The garbage collector leaves out what exists, also after a test that has ended that."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest(CONFTEST.read_text())
    test = """
        import gc

        def test_objects():
            assert gc.get_freeze_count() > 10_000
            gc.unfreeze()
        """
    pytester.makepyfile(test_first=dedent(test), test_second=dedent(test))
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
