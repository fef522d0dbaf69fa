"""Plays a recipe: types its commands, checks what is printed, and keeps the transcript."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from torchbench_dbg import process
from torchbench_dbg.debugger.gdb import Gdb
from torchbench_dbg.errors import TargetError
from torchbench_dbg.recipes import needs
from torchbench_dbg.recipes.conversation import Answer, Conversation, Silence
from torchbench_dbg.recipes.format import PROMPTS, Command, Recipe, Stage, line_of
from torchbench_dbg.recipes.record import Exchange, Expectation, StageTranscript, Status, Transcript

_GONE = "the program has ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a recipe is played on. `timeout`: seconds for one command."""

    python: Path
    gdb: Gdb
    timeout: float
    cuda_sync: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who follows a recipe while it plays. `hand_over`: lets the user talk to the debuggers at the end of a stage."""

    begin: Callable[[Recipe, dict[str, str]], None]
    stage: Callable[[Stage], None]
    exchange: Callable[[Exchange], None]
    hand_over: Callable[[Stage, Conversation], None]


class _Stop(Exception):
    """The recipe can't go on."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass(slots=True, kw_only=True)
class Player:
    """One play of a recipe."""

    recipe: Recipe
    setting: Setting
    audience: Audience
    _stages: list[StageTranscript] = field(default_factory=list)
    _exchanges: list[Exchange] = field(default_factory=list)

    def play(self) -> Transcript:
        """The transcript, whatever happens: green, red, skipped, timeout, interrupted. TargetError without torch."""
        begin = time.monotonic()
        lacking = needs.lacking(self.recipe.needs, self.setting.python)
        if lacking:
            return self._transcript({}, "skipped", f"needs {lacking}", begin)
        target = describe_target(self.setting)
        self.audience.begin(self.recipe, target)
        conversation = Conversation(
            python=self.setting.python,
            script=self.recipe.script,
            arguments=self.recipe.arguments,
            gdb=self.setting.gdb,
            variables={"CUDA_LAUNCH_BLOCKING": "1"} if self.setting.cuda_sync else {},
            timeout=self.setting.timeout,
        )
        status: Status = "green"
        reason = None
        try:
            for stage in self.recipe.stages:
                self._play_stage(stage, conversation)
        except _Stop as stop:
            status, reason = stop.status, stop.reason
        except Silence as silence:
            status, reason = "timeout", f"{silence.message} It had printed: {silence.output[-500:] or 'nothing'}"
        except KeyboardInterrupt:
            status, reason = "interrupted", "Ctrl-C"
        finally:
            conversation.close()
        return self._transcript(target, status, reason, begin)

    def _play_stage(self, stage: Stage, conversation: Conversation) -> None:
        self.audience.stage(stage)
        try:
            for command in self._opening(stage, conversation):
                self._say(stage, conversation, command)
            for command in stage.commands:
                self._say(stage, conversation, command)
        finally:
            self._stages.append(
                StageTranscript(
                    name=stage.name, title=stage.title, debugger=stage.debugger, exchanges=tuple(self._exchanges)
                )
            )
            self._exchanges.clear()
        if conversation.at != "ended":
            self.audience.hand_over(stage, conversation)

    def _opening(self, stage: Stage, conversation: Conversation) -> list[Command]:
        """Start what the stage needs; the breakpoints that are then set."""
        if not self._stages:
            answer = conversation.start_pdb() if stage.debugger == "pdb" else conversation.start_gdb()
            self._started(stage, answer, self._command_line(stage.debugger))
        elif stage.debugger == "gdb" and not conversation.has_gdb and conversation.at == "pdb":
            answer = conversation.attach_gdb()
            self._started(stage, Answer(at=answer.at, text="", seconds=answer.seconds), f"gdb -p {conversation.pid}")
        name = self.recipe.script.name
        places = (
            [f"{name}:{line_of(self.recipe, t)}" for t in stage.breaks] if stage.debugger == "pdb" else stage.breaks
        )
        return [Command(run=f"break {place}", expect=("Breakpoint",)) for place in places]

    def _command_line(self, debugger: str) -> str:
        words = " ".join([self.recipe.script.name, *self.recipe.arguments])
        return f"python -m pdb {words}" if debugger == "pdb" else f"gdb --args python {words}"

    def _started(self, stage: Stage, answer: Answer, command: str) -> None:
        text = answer.text if stage.debugger == "pdb" else ""
        self._keep(
            Exchange(
                debugger=stage.debugger, prompt="$ ", command=command, output=text, seconds=round(answer.seconds, 3)
            )
        )
        if answer.at != stage.debugger:
            raise _Stop("red", f"{stage.debugger} could not start: {answer.text[-500:] or _GONE}")

    def _say(self, stage: Stage, conversation: Conversation, command: Command) -> None:
        if conversation.at != stage.debugger:
            where = _GONE if conversation.at == "ended" else f"{conversation.at} has the floor"
            raise _Stop("red", f"stage {stage.name}: {command.run!r} can't be typed, {where}")
        answer = conversation.send(command.run)
        expectations = _check(command.expect, answer.text)
        self._keep(
            Exchange(
                debugger=stage.debugger,
                prompt=PROMPTS[stage.debugger],
                command=command.run,
                output=answer.text,
                seconds=round(answer.seconds, 3),
                note=command.note,
                expectations=expectations,
            )
        )
        failed = [expectation.pattern for expectation in expectations if not expectation.met]
        if failed:
            raise _Stop("red", f"stage {stage.name}: {command.run!r} did not print {failed[0]!r}")

    def _keep(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)
        self.audience.exchange(exchange)

    def _transcript(self, target: dict[str, str], status: Status, reason: str | None, begin: float) -> Transcript:
        recipe = self.recipe
        return Transcript(
            recipe=recipe.name,
            title=recipe.title,
            teaches=recipe.teaches,
            watch=recipe.watch,
            then=recipe.then,
            script=recipe.script.read_text(encoding="utf-8"),
            target=target,
            status=status,
            failure=reason,
            stages=tuple(self._stages),
            seconds=round(time.monotonic() - begin, 3),
        )


def _check(patterns: tuple[str, ...], text: str) -> tuple[Expectation, ...]:
    """Each pattern is looked for after what the one before it matched."""
    position, found = 0, []
    for pattern in patterns:
        match = re.compile(pattern, re.MULTILINE).search(text, position)
        position = match.end() if match else position
        found.append(Expectation(pattern=pattern, met=match is not None))
    return tuple(found)


_PROBE = (
    "import importlib.metadata as m, platform as p\n"
    "try: print(p.python_version(), m.version('torch'))\n"
    "except m.PackageNotFoundError: print(p.python_version())"
)


def describe_target(setting: Setting) -> dict[str, str]:
    """Versions, without the seconds of importing torch. TargetError if there is no torch."""
    answer = process.run([str(setting.python), "-c", _PROBE], timeout=60)
    words = answer.stdout.split()
    if answer.returncode or not words:
        last = answer.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        raise TargetError(f"{setting.python} does not work: {last[0]}")
    if len(words) < 2:
        raise TargetError(f"{setting.python} has no torch.", hint="--python PATH or TDBG_PYTHON chooses one that has")
    facts = {"python": words[0], "torch": words[1], "executable": str(setting.python)}
    facts["gdb"] = "{}.{}".format(*setting.gdb.version)
    if setting.cuda_sync:
        facts["CUDA_LAUNCH_BLOCKING"] = "1"
    return facts
