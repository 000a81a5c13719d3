"""How long a large project's managers take to build, and how much memory: ``python bench/schema.py``.

Makes Django models of a made-up company (``--managers``, 500 by default): each has eleven columns of common types, one
to three foreign keys, a tenant and a user who changed it, and shows all of that and what points to it. Measured one by
one and summed up: the managers are described from their models, indexed, seen by an actor, and made into the GraphQL
schema. The models themselves, which a project has anyway, do not count. Of three runs the fastest counts; memory is
what tracemalloc finds in a run of its own. The target is judged by processor time, which on an idle machine is the
wall-clock time and hardly depends on who else uses it.

Then paths: between random pairs of managers, how many lead through the tenant or the user with and without the
avoidance of hubs, and how long one search takes. At last ``--most`` managers (5,000) are built, and as many in a chain.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import time
import tracemalloc
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

import django
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gm_chat.managers.api import Visibility
    from gm_chat.managers.index import SchemaIndex

MAX_SECONDS, MAX_MEGABYTES = 0.5, 20
SUBJECTS = 40
"""Every so many models one is a subject, to which those after it belong."""
PAIRS = 500
HUBS = ("TenantManager", "UserManager")
APPS = ("company", "many", "chain")


def main() -> int:
    options = _options()
    for app in APPS:
        sys.modules[app] = ModuleType(app)
        sys.modules[app].__path__ = [str(Path(__file__).parent / app)]
    settings.configure(
        INSTALLED_APPS=["gm_chat", *APPS], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField"
    )
    django.setup()
    import graphql  # its import is not what is measured

    print(f"Python {sys.version.split()[0]}, Django {django.__version__}, graphql-core {graphql.__version__}")
    managers = made(options.managers, "company")
    fastest = min((build(managers) for _ in range(3)), key=lambda took: took["all"].processor)
    memory = build(managers, memory=True)
    print(f"\n{len(managers)} managers          wall s    CPU s       MB")
    for step, took in fastest.items():
        print(f"{step:22} {took.wall:9.3f} {took.processor:8.3f} {memory[step].megabytes:8.1f}")
    is_met = fastest["all"].processor <= MAX_SECONDS and memory["all"].megabytes <= MAX_MEGABYTES
    if options.managers == 500:
        print(f"target for 500: {MAX_SECONDS} s of processor time, {MAX_MEGABYTES} MB: {'met' if is_met else 'missed'}")
    paths(managers)
    for app, shape in (("many", "as above"), ("chain", "in one chain")):
        took = build(made(options.most, app))["all"]
        print(f"\n{options.most} managers, {shape}: {took.wall:.2f} s wall, {took.processor:.2f} s CPU")
    return int(options.managers == 500 and not is_met)


def made(count: int, app: str) -> list[Any]:
    """Declarations over models that are made here; the first two are the tenant and the user."""
    from django.apps import apps

    from gm_chat.managers import ModelManager

    chance = random.Random(count)
    built: list[Any] = []
    declared = []
    # Django forgets what it knows of all models whenever one is made, which takes minutes for thousands.
    with mock.patch.object(apps, "clear_cache"):
        for number in range(count):
            name = ("Tenant", "User")[number] if number < 2 else f"Record{number}"
            if app == "chain":
                targets = [("previous", built[-1])] if built else []
            else:
                targets = _targets(chance, built, count) if number >= 2 else []
            built.append(_model(f"{app.title()}{name}", app, targets))
            declared.append(
                type(
                    f"{name}Manager",
                    (ModelManager,),
                    {"model": built[-1], "chat_exposed": True, "__doc__": f"{name} data."},
                )
            )
    apps.clear_cache()
    return declared


def _targets(chance: random.Random, built: list[Any], count: int) -> list[tuple[str, Any]]:
    subjects = built[2 :: max(1, count // SUBJECTS)]
    chosen = chance.sample(subjects, min(len(subjects), chance.choice((1, 1, 2, 3))))
    own = [(f"of_{model.__name__.lower()}", model) for model in chosen]
    return [*own, ("tenant", built[0]), ("changed_by", built[1])]


def _model(name: str, app: str, targets: list[tuple[str, Any]]) -> Any:
    from django.db import models

    columns: dict[str, Any] = {
        "name": models.CharField(max_length=100, help_text="what people call it"),
        "number": models.CharField(max_length=20, unique=True),
        "status": models.CharField(max_length=10, choices=[("open", "Open"), ("done", "Done"), ("lost", "Lost")]),
        "note": models.TextField(blank=True),
        "amount": models.DecimalField(max_digits=12, decimal_places=2, null=True, help_text="net, in euro"),
        "weight": models.FloatField(null=True),
        "count": models.IntegerField(default=0),
        "is_active": models.BooleanField(default=True),
        "begins": models.DateField(null=True),
        "created_at": models.DateTimeField(auto_now_add=True),
    }
    for label, target in targets:
        columns[label] = models.ForeignKey(target, models.CASCADE, related_name=f"{name.lower()}_{label}")
    meta = type("Meta", (), {"app_label": app})
    return type(name, (models.Model,), {**columns, "__module__": __name__, "Meta": meta})


@dataclass
class Took:
    wall: float = 0.0
    processor: float = 0.0
    megabytes: float = 0.0


def build(managers: list[Any], *, memory: bool = False) -> dict[str, Took]:
    """What each step takes, and all together; megabytes are those that stay."""
    from gm_chat.managers.describe import describe
    from gm_chat.managers.index import SchemaIndex
    from gm_chat.managers.schema import build_schema

    took: dict[str, Took] = {}
    kept: list[Any] = []

    def step(name: str, function: Callable[[], Any]) -> Any:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        wall, processor = time.perf_counter(), time.process_time()
        kept.append(function())
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        gc.collect()
        took[name] = Took(wall, processor, (tracemalloc.get_traced_memory()[0] - before) / 1e6)
        return kept[-1]

    if memory:
        tracemalloc.start()
    described = step("describe", lambda: describe(managers))
    infos = [binding.info for binding in described.bindings.values()]
    index = step("index", lambda: SchemaIndex.build(infos))
    step("first view and search", lambda: index.view(_everything(index)).search("open records"))
    step("GraphQL schema", lambda: build_schema(index.managers.values()))
    if memory:
        tracemalloc.stop()
    parts = list(took.values())
    took["all"] = Took(*(sum(getattr(part, field.name) for part in parts) for field in fields(Took)))
    return took


def _everything(index: SchemaIndex) -> Visibility:
    from gm_chat.managers.api import ManagerVisibility, Visibility

    rights = {
        name: ManagerVisibility(
            frozenset(item.name for item in info.fields), frozenset(item.name for item in info.relations), frozenset()
        )
        for name, info in index.managers.items()
    }
    return Visibility("bench", rights)


def paths(managers: list[Any]) -> None:
    """Compare the paths between random pairs with and without the avoidance of hubs."""
    from gm_chat.managers.describe import describe
    from gm_chat.managers.index import SchemaIndex
    from gm_chat.managers.paths import RelationGraph

    index = SchemaIndex.build(binding.info for binding in describe(managers).bindings.values())
    relations = {name: info.relations for name, info in index.managers.items()}
    graph, naive = RelationGraph(relations), RelationGraph(relations, hub_minimum=len(relations))
    names = sorted(set(relations) - set(HUBS))
    chance = random.Random(PAIRS)
    pairs = [tuple(chance.sample(names, 2)) for _ in range(PAIRS)]
    print(f"\npaths between {PAIRS} pairs; hubs: {', '.join(sorted(graph.hubs)) or 'none'}")
    print(f"{'':22} through a hub   none   median steps   ms (median, p95)")
    for label, used, limit in (("any path", naive, 1), ("hubs avoided", graph, 1), ("five alternatives", graph, 5)):
        took, lengths, through, none = [], [], 0, 0
        for start, goal in pairs:
            started = time.perf_counter()
            found = used.paths(start, goal, limit=limit)
            took.append((time.perf_counter() - started) * 1000)
            none += not found
            lengths += [len(path) for path in found]
            through += any(_passed(relations, start, path) & set(HUBS) for path in found)
        p95 = statistics.quantiles(took, n=20)[-1]
        print(
            f"{label:22} {through:13} {none:6} {statistics.median(lengths):14.0f}"
            f"   {statistics.median(took):.2f}, {p95:.2f}"
        )


def _passed(relations: Mapping[str, Any], start: str, path: tuple[str, ...]) -> set[str]:
    passed, here = set(), start
    for hop in path[:-1]:
        here = next(item.target for item in relations[here] if item.name == hop)
        passed.add(here)
    return passed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=f"see {Path(__file__).name}")
    parser.add_argument("--managers", type=int, default=500)
    parser.add_argument("--most", type=int, default=5_000)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
