"""Runs in processes of their own: steering them, and that they are what `train` gives here."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for
from faults_kit import pause
from task_kit import with_task

from normviz import RunConfig
from normviz.config import ConfigError, is_quick
from normviz.cores import cores
from normviz.execution.cell import lab_numbers
from normviz.execution.client import SupervisorClient
from normviz.execution.supervisor import SPARES
from normviz.home import VARIABLE
from normviz.model import texts
from normviz.policy import Policy
from normviz.runs.store import Store, cells, pictures
from normviz.studies.claims import CLAIMS
from normviz.training.schedule import peak_at

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisorClient]:
    """A supervisor with a warm worker, for all tests of this file."""
    backend = SupervisorClient(Store(tmp_path_factory.mktemp("runner")))
    backend.ensure()
    wait_for(lambda: backend.store.supervisor()[1], "a warm worker")
    assert backend.process is not None
    session = backend.process.pid
    yield backend
    backend.close()
    wait_for(lambda: not members(session), "the end of every process")


@pytest.fixture
def store(backend: SupervisorClient) -> Iterator[Store]:
    """The supervisor's store, idle and warm; runs that a test leaves behind are stopped."""
    store = backend.store
    wait_for(lambda: store.supervisor()[1], "a warm worker")
    yield store
    open_runs = "SELECT id FROM runs WHERE status IN ('queued', 'running', 'paused')"
    for (run,) in store.db.connection.execute(open_runs).fetchall():
        store.control(run, "stop")
    wait_for(lambda: not store.db.connection.execute(open_runs).fetchall(), "idleness")


def test_a_run_is_bitwise_what_train_gives_here(store: Store) -> None:
    config = SHORT.replace(scheme="post", dropout=0.1)
    lane = Lane(store, config)
    lane.reach("finished")
    assert lane.steps.loss.tolist() == losses(config)
    assert lane.steps.layer_steps.tolist() == list(range(20))
    run = lane.run
    assert run.started is not None and (run.started.threads, run.message) == (1, None)


def test_a_lane_beyond_the_cores_waits_its_turn_or_is_stopped(store: Store) -> None:
    lanes = [Lane(store, LONG) for _ in range(cores())]
    last, unwanted = Lane(store, SHORT), Lane(store, SHORT.replace(scheme="post"))
    for lane in lanes:
        lane.reach_step(1)
    assert {lane.status for lane in lanes} == {"running"}
    assert len({lane.pid for lane in lanes}) == cores()
    place = store.place(last.id)
    assert last.status == "queued" and place is not None and place.number == 1
    unwanted.stop()
    assert unwanted.n == 0 and unwanted.run.started is None
    lanes[0].stop()
    last.reach("finished")
    assert last.steps.loss.tolist() == losses(SHORT)


def test_the_picture_of_ended_runs_is_drawn_while_nothing_trains(store: Store) -> None:
    lanes = [Lane(store, SHORT.replace(scheme=scheme)) for scheme in ("pre", "post")]
    for lane in lanes:
        lane.reach("finished")
    runs = [lane.id for lane in lanes]
    assert pictures.of(store, runs) is None
    pictures.ask(store, runs, "somebody")
    wait_for(lambda: pictures.of(store, runs), "a picture")
    assert "Post-LN" in pictures.of(store, runs).light["loss"]


# Pause, step, resume


def test_started_paused_a_lane_waits_before_its_first_step(store: Store) -> None:
    lane = Lane(store, SHORT, paused=True)
    lane.reach("paused")
    Lane(store, SHORT).reach("finished")  # time enough to do something wrong
    assert (lane.status, lane.n) == ("paused", 0)


def test_a_pause_before_the_first_step_is_kept_and_told(store: Store) -> None:
    """The press may come while the model is being built."""
    lane = Lane(store, LONG.replace(depth=96, steps=10_000))
    store.control(lane.id, "pause")
    lane.reach("paused")
    store.control(lane.id, "resume")
    lane.reach("running")
    lane.reach_step(1)


def test_many_paused_runs_do_not_keep_others_from_training(store: Store) -> None:
    paused = [Lane(store, SHORT, paused=True) for _ in range(Policy().paused + 2)]
    for lane in paused:
        wait_for(lambda lane=lane: lane.status in ("paused", "stopped"), "its turn")
    Lane(store, SHORT).reach("finished")
    wait_for(lambda: sum(x.status == "paused" for x in paused) <= Policy().paused, "room")
    assert next(x.run.message for x in paused if x.status == "stopped") is not None
    assert paused[-1].status == "paused"  # the first to go is the oldest


def test_step_is_exactly_one_and_resume_changes_no_number(store: Store) -> None:
    lane = Lane(store, SHORT, paused=True)
    lane.reach("paused")
    for n in (1, 2):
        store.control(lane.id, "step")
        lane.reach_step(n)
    store.control(lane.id, "step")
    store.control(lane.id, "step")
    lane.reach_step(4)
    Lane(store, SHORT).reach("finished")
    assert (lane.status, lane.n) == ("paused", 4)
    store.control(lane.id, "resume")
    lane.reach("finished")
    assert lane.steps.loss.tolist() == losses(SHORT)


def test_pause_holds_a_running_lane(store: Store) -> None:
    lane = Lane(store, LONG)
    lane.reach_step(1)
    store.control(lane.id, "pause")
    lane.reach("paused")
    Lane(store, SHORT).reach("finished")  # by now it has written down what it had
    held = lane.n
    Lane(store, SHORT).reach("finished")
    assert (lane.status, lane.n) == ("paused", held)
    store.control(lane.id, "resume")
    lane.reach_step(held + 5)
    assert lane.status == "running"


# Stop

SOON = 200
"""Steps of a LONG run: about two seconds where nothing else runs. A stop takes a tenth of that."""


def steps_until_its_end(lane: Lane, clock: Lane) -> int:
    """Stops a lane; returns how many steps another one makes until the first one's process has ended.

    Both wait for the same cores, so that a busy machine changes little.
    """
    pid, before = lane.pid, clock.n
    lane.stop()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the process")
    assert clock.status == "running"
    return clock.n - before


def test_stop_ends_the_process_and_keeps_the_steps(store: Store) -> None:
    """What it had is a prefix of the run. Paused ones are stopped after each test."""
    lane, clock = Lane(store, LONG), Lane(store, LONG)
    lane.reach_step(3)
    clock.reach_step(3)
    assert steps_until_its_end(lane, clock) < SOON
    n = lane.n
    assert n >= 3
    assert lane.steps.step.tolist() == list(range(n))
    assert lane.steps.loss[:3].tolist() == losses(LONG.replace(steps=3))


def test_stop_does_not_wait_for_a_long_step(store: Store) -> None:
    """Here one that does not end: its process is held in the middle of a step, and killed there."""
    lane, clock = Lane(store, LONG), Lane(store, LONG)
    lane.reach_step(1)
    clock.reach_step(3)
    pause(store, lane.pid)
    n = lane.n
    assert steps_until_its_end(lane, clock) < SOON
    assert lane.n == n


# The learning rate


def test_a_live_change_is_noted_in_the_config(store: Store) -> None:
    lane = Lane(store, SHORT, paused=True)
    for _ in range(5):
        store.control(lane.id, "step")
    lane.reach_step(5)
    lane.reach("paused")
    wait_for(lambda: store.set_rate([lane.id], 0.05) == 5, "its step")
    store.control(lane.id, "resume")
    lane.reach("finished")
    assert lane.run.config == SHORT.replace(lr_edits=((5, 0.05),))
    assert lane.run.key == lane.run.config.key
    assert lane.steps.lr.tolist() == [SHORT.lr] * 5 + [0.05] * 15
    assert lane.steps.loss.tolist() == losses(lane.run.config)


def test_an_illegal_rate_is_refused_and_the_run_goes_on(store: Store) -> None:
    lane = Lane(store, LONG)
    lane.reach_step(1)
    for lr in (-1.0, 0.0, 1e9, math.nan):
        with pytest.raises(ConfigError, match="allowed is"):
            store.set_rate([lane.id], lr)
    lane.reach_step(lane.n + 1)
    assert lane.run.config == LONG


def rates(lane: Lane) -> list[float]:
    return lane.steps.lr.tolist()


def edits(asked: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """The rates of a run after each was asked for from its step on: the last one asked for counts."""
    kept: list[tuple[int, float]] = []
    for step, rate in asked:
        kept = [edit for edit in kept if edit[0] < step] + [(step, rate)]
    return tuple(kept)


def test_lanes_of_different_speed_take_another_rate_at_the_same_step(store: Store) -> None:
    """Four times, at whatever moment; what they trained with is what their configs say.

    A rate asked for after the fast lane ended is the slow one's alone. The step of such a rate
    may be before a step that both had agreed on, and then it replaces that one.
    """
    slow, fast = lanes = [Lane(store, LONG.replace(depth=depth)) for depth in (80, 40)]
    asked: list[tuple[int, float]] = []

    def ask() -> None:
        rate = 1e-4 * (len(asked) + 2)
        step = store.set_rate([lane.id for lane in lanes], rate)
        assert step is not None
        asked.append((step, rate))

    fast.reach_step(1)
    for nth in range(4):
        if nth == 2:
            slow.reach_step(asked[-1][0] + 1)
        ask()
        fast.reach_step(asked[-1][0] + 1)
    fast.stop()
    both = tuple(asked)
    ask()
    slow.reach_step(asked[-1][0] + 1)
    slow.stop()
    assert fast.run.config.lr_edits == both == edits(list(both))
    assert slow.run.config.lr_edits == edits(asked)
    for lane in lanes:
        assert rates(lane) == [peak_at(lane.run.config, step) for step in range(lane.n)]


def test_paused_at_different_steps_lanes_take_another_rate_at_the_later_one(store: Store) -> None:
    lanes = [Lane(store, SHORT, paused=True) for _ in range(2)]
    for lane, n in zip(lanes, (2, 5), strict=True):
        lane.reach("paused")
        for step in range(n):
            store.control(lane.id, "step")
            lane.reach_step(step + 1)
            lane.reach("paused")
    wait_for(lambda: store.set_rate([lane.id for lane in lanes], 0.01) == 5, "both to rest")
    for lane in lanes:
        store.control(lane.id, "resume")
        lane.reach("finished")
        assert lane.run.config.lr_edits == ((5, 0.01),)
        assert rates(lane) == [SHORT.lr] * 5 + [0.01] * 15
    assert lanes[0].steps.loss.tolist() == losses(lanes[0].run.config)


def test_a_rate_turned_while_a_run_waits_is_its_rate_from_the_start(store: Store) -> None:
    lane = Lane(store, SHORT, paused=True)
    lane.reach("paused")
    assert store.set_rate([lane.id], 0.01) == 0
    store.control(lane.id, "resume")
    lane.reach("finished")
    assert (lane.run.config.lr, lane.run.config.lr_edits) == (0.01, ())
    assert rates(lane) == [0.01] * 20


# Results that are no curves


def test_a_diverged_run_says_where(store: Store) -> None:
    lane = Lane(store, SHORT.replace(scheme="none", optimizer="sgd", lr=10.0, momentum=0.99))
    lane.reach("diverged")
    bad = lane.run.first_bad
    assert bad is not None and bad.step == lane.n - 1
    assert bad.where in ("activation", "gradient", "loss")


def test_no_steps_is_one_measurement(store: Store) -> None:
    lane = Lane(store, SHORT.replace(steps=0))
    lane.reach("finished")
    assert (lane.n, len(lane.steps.layers)) == (1, 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA GPU")
def test_a_run_that_cannot_start_fails_with_a_sentence(store: Store) -> None:
    lane = Lane(store, SHORT.replace(device="cuda"))
    lane.reach("failed")
    assert (lane.run.message or "").startswith("device is 'cuda', but this machine has no CUDA GPU")


# A text


def test_a_worker_reads_a_text_by_its_hash(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the folder of its store; a run whose text is not there fails with a sentence."""
    monkeypatch.setenv(VARIABLE, str(store.folder))
    config = with_task(SHORT, "text")
    lane = Lane(store, config)
    lane.reach("finished")
    assert lane.steps.loss.tolist() == losses(config)
    started = lane.run.started
    assert started is not None and (started.text or "")[:32] == config.text
    texts.delete(config.text)
    lane = Lane(store, config)
    lane.reach("failed")
    assert "that this server does not have" in (lane.run.message or "")


# Deaths


def test_a_killed_worker_takes_nothing_else_along(store: Store) -> None:
    killed, other = Lane(store, LONG), Lane(store, SHORT.replace(steps=1000))
    killed.reach_step(5)
    other.reach_step(1)
    before = killed.steps
    os.kill(killed.pid, signal.SIGKILL)
    killed.reach("failed")
    wait_for(lambda: "killed by signal 9" in (killed.run.message or ""), "the obituary")
    n = len(before.step)
    assert killed.n >= n
    assert killed.steps.loss[:n].tobytes() == before.loss.tobytes()
    assert killed.steps.step.tolist() == list(range(killed.n))
    other.reach("finished")
    assert other.n == 1000


def test_one_supervisor_a_store(backend: SupervisorClient, store: Store) -> None:
    environment = {**os.environ, "NORMVIZ_HOME": str(store.folder)}
    command = [sys.executable, "-m", "normviz.execution.supervise"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as second:
        assert second.wait(60) == 0  # although its standard input is open
    row = store.db.connection.execute("SELECT pid FROM supervisor").fetchone()
    assert backend.process is not None
    assert row["pid"] == backend.process.pid
    Lane(store, SHORT).reach("finished")


def test_a_second_server_uses_the_same_supervisor(store: Store) -> None:
    other = SupervisorClient(store)
    other.ensure()
    assert other.process is None
    other.close()  # and its end is not the supervisor's
    Lane(store, SHORT).reach("finished")


# Measurements at initialisation hand their process back: nothing is forked for each of them


def test_what_is_quick() -> None:
    assert is_quick(RunConfig(depth=96, steps=0))
    assert not is_quick(RunConfig(depth=96, steps=1))
    assert not is_quick(RunConfig(depth=1000, steps=0))
    assert not is_quick(RunConfig(depth=96, scheme="attnres", steps=0))  # gigabytes


def test_measurements_in_a_row_fork_nothing(backend: SupervisorClient, store: Store) -> None:
    assert backend.process is not None
    session = backend.process.pid
    measure(store, range(2))
    # The supervisor, the two processes of its fork server, and the spares, which other tests have used up.
    wait_for(lambda: len(members(session)) == 3 + SPARES, "all spares")
    before = members(session)
    assert {lane.pid for lane in measure(store, range(2, 8))} <= before
    # A process of an earlier test may have been about to end.
    assert members(session) <= before


def test_a_used_process_gives_the_same_numbers(store: Store) -> None:
    first = RunConfig(depth=9, scheme="admin", steps=0)
    second = SHORT.replace(steps=0, dropout=0.1)
    for config in (first, second, first):
        lane = Lane(store, config)
        lane.reach("finished")
        assert lane.steps.loss.tolist() == losses(config)
    lane = Lane(store, SHORT)
    lane.reach("finished")
    assert lane.steps.loss.tolist() == losses(SHORT)


def test_a_measurement_of_a_large_model_ends_its_process(store: Store) -> None:
    lane = Lane(store, SHORT.replace(depth=3, width=1024, steps=0))
    lane.reach("finished")
    pid = lane.pid
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the process")


def test_used_processes_that_die_are_replaced(backend: SupervisorClient, store: Store) -> None:
    assert backend.process is not None
    session, used = backend.process.pid, {lane.pid for lane in measure(store, range(4))}
    for pid in used:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not members(session) & used, "their end")
    lanes = [Lane(store, LONG), Lane(store, SHORT.replace(steps=0))]
    lanes[0].reach_step(1)
    lanes[1].reach("finished")


def test_a_run_handed_to_a_process_that_dies_goes_to_another(
    backend: SupervisorClient, store: Store
) -> None:
    """Killed before it has read which run is its own, a process has not touched it."""
    assert backend.process is not None
    used = {lane.pid for lane in measure(store, range(10, 14))} & members(backend.process.pid)
    for pid in used:
        os.kill(pid, signal.SIGSTOP)  # what is sent to it arrives, and is not read
    version = store.version()
    lane = Lane(store, LONG)
    wait_for(lambda: store.version() != version, "the hand-out")  # a write of the supervisor's
    for pid in used:
        os.kill(pid, signal.SIGKILL)
    lane.reach_step(1)


def measure(store: Store, seeds: range) -> list[Lane]:
    """One measurement after the other; the last two processes have time to be warm again."""
    lanes = []
    for seed in seeds:
        lanes.append(Lane(store, SHORT.replace(steps=0, init_seed=seed)))
        lanes[-1].reach("finished")
    return lanes


def test_cells_train_beside_runs_as_here_and_stop(store: Store) -> None:
    configs = [SHORT.replace(lr=lr, data_seed=77) for lr in (0.001, 0.01, 0.1)]
    broken = SHORT.replace(device="cuda", data_seed=77)
    cells.ask(store, [*configs, broken], "map", "a")
    keys = [config.key for config in (*configs, broken)]
    wait_for(lambda: cells.opened(store, keys, "a") is None, "the ends")
    for config in configs:
        run = store.latest(config.key)
        assert run is not None and run.origin == "sweep"
        assert store.losses(run.id).tolist() == losses(config)
    (why,) = cells.failures(store, keys)
    assert "CUDA" in why
    long = [LONG.replace(init_seed=n, data_seed=77) for n in range(4)]
    cells.ask(store, long, "map", "a")
    keys = [config.key for config in long]
    wait_for(lambda: (opened := cells.opened(store, keys, "a")) and opened.running, "a cell")
    lane = Lane(store, SHORT)  # it needs none of their processes
    lane.reach("finished")
    cells.stop(store, keys, "a")
    wait_for(lambda: cells.opened(store, keys, "a") is None, "the stop")
    assert not cells.failures(store, keys) and store.latest(long[0].key) is None


def test_a_lab_measures_as_here(store: Store) -> None:
    claim = next(claim for claim in CLAIMS if claim.lab == "norms")
    config = claim.cells(1)[0].config
    cells.ask(store, [config], "claim", "a", lab="norms")
    wait_for(lambda: cells.reading(store, "norms", config), "the reading")
    run = cells.reading(store, "norms", config)
    assert run is not None
    assert run.reading == pytest.approx(lab_numbers("norms", config.canonical())[0], nan_ok=True)
