"""The choice of an executor."""

import itertools

import pytest

from gm_chat.planned.models import PlannedTask, RoutingFeature
from gm_chat.planned.routing import select_executor_role

FEATURES: tuple[RoutingFeature, ...] = ("has_dependency", "requires_calculation", "multiple_queries")


def task(*features: RoutingFeature) -> PlannedTask:
    return PlannedTask("t", "List the parts.", (), (), (), features)


@pytest.mark.parametrize("path_depth", [None, 0, 1])
def test_what_is_simple_in_every_respect_is_simple(path_depth: int | None) -> None:
    role = select_executor_role(task(), unique_manager=True, path_depth=path_depth, prior_failure=False)
    assert role == "simple_executor"


def test_one_doubt_is_enough_for_the_complex_one() -> None:
    tasks = [task(), *(task(feature) for feature in FEATURES)]
    for each, unique, depth, failed in itertools.product(tasks, [True, False], [None, 0, 1, 2, 9], [True, False]):
        role = select_executor_role(each, unique_manager=unique, path_depth=depth, prior_failure=failed)
        simple = not each.routing_features and unique and not failed and (depth is None or depth <= 1)
        assert role == ("simple_executor" if simple else "complex_executor")


def test_a_depth_below_zero_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="path_depth is -1"):
        select_executor_role(task(), unique_manager=True, path_depth=-1, prior_failure=False)
