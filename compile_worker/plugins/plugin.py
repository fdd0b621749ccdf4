"""A user's Python file as a value: its text, its digest, and what it declares.

The text is all that there is of it: it is read once, run once in every process that needs it, and
wherever it goes it is known by its digest.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from tilefarm.artifact import PluginText
from tilefarm.digest import Digest
from tilefarm.errors import SettingsError, TilefarmError

from compile_worker.machines.cpu.space.script_context import ScriptRule
from compile_worker.machines.cpu.space.script_intrinsics import intrinsic_rule
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import Pass, PassError, stages_by_name
from compile_worker.plugins import custom_pass, rules
from compile_worker.plugins.custom_intrinsic import CustomIntrinsic, pass_of
from compile_worker.plugins.custom_pass import CustomPass
from compile_worker.plugins.failure import failure
from compile_worker.plugins.operator import CustomOperator
from compile_worker.plugins.passes import UserPass, know_passes, knows_plugin, with_user_pass
from compile_worker.plugins.patience import OverdueError, patience
from compile_worker.plugins.tile_intrinsic import tile_of, tile_pass

MOST_NBYTES: Final = 1 << 20
"""Of a file: one that people write has some kilobytes."""

LOAD_SECONDS: Final = 20.0
"""What a file may take to be run, its imports included."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What one file declares.

    Attributes:
        rules: that take part in the spaces of scripts.
        passes: that lower every kernel; those of intrinsics as well.
    """

    text: PluginText
    operators: tuple[CustomOperator, ...]
    rules: tuple[ScriptRule, ...] = ()
    passes: tuple[UserPass, ...] = ()

    @property
    def digest(self) -> Digest:
        return self.text.digest


def plugin_of(named: str, text: bytes) -> Plugin:
    """Runs a file's text, and collects what it declares.

    Raises:
        SettingsError: it is too large, no Python, it fails or does not end, or it declares nothing.
    """
    module = _run(named, text)
    declared = {id(each): each for each in vars(module).values()}.values()
    operators = tuple(each for each in declared if isinstance(each, CustomOperator))
    if any(isinstance(each, Pass) for each in declared):
        raise SettingsError(
            f"--plugin: {named} declares a Pass, and its place is not said",
            "@custom_pass(after=STEP) above the function",
        )
    generating = tuple(rules.guarded(each) for each in declared if isinstance(each, ScriptRule))
    passes = [each for each in declared if isinstance(each, CustomPass)]
    source = PluginText(named, text)
    for each in declared:
        if isinstance(each, CustomIntrinsic) and each.dtype is None:
            tile = tile_of(each, source)
            passes.append(tile_pass(tile, each))
            generating = (*generating, intrinsic_rule(tile))
        elif isinstance(each, CustomIntrinsic):
            passes.append(pass_of(each, source))
    if not operators and not generating and not passes:
        raise SettingsError(
            f"--plugin: {named} declares no operator",
            "@custom_operator(domain, name) above a script, @custom_pass(after=...) above a rewrite"
            " of the IR, @custom_intrinsic(llvm, of=...) above an expression or without `of` above"
            " loops, or a ScriptRule",
        )
    labels = [each.label for each in operators] + [each.name for each in generating]
    labels += [each.name for each in passes]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise SettingsError(f"--plugin: {named} declares {twice} twice", "each once")
    return Plugin(source, operators, generating, tuple(_placed(each, source) for each in passes))


def learn_passes(source: PluginText) -> None:
    """Schedules that name passes of this file can be compiled in this process; it is run once.

    Raises:
        SettingsError: as of `plugin_of`.
    """
    if not knows_plugin(source):
        know_passes(plugin_of(source.named, source.text).passes)


def _placed(mine: CustomPass, source: PluginText) -> UserPass:
    """The pass, once it is known that it can go where it is to.

    Raises:
        SettingsError: it cannot.
    """
    run = custom_pass.guarded(mine, source)
    placed = UserPass(mine.name, mine.after, run, source, source.digest)
    steps = stages_by_name([step for each in MACHINES.values() for step in each.passes])
    if mine.after not in steps:
        why = f"there is no pass {mine.after!r} for {mine.name} to go behind"
        raise SettingsError(f"--plugin: {source.named}: {why}", f"one of {', '.join(steps)}")
    try:
        for machine in MACHINES.values():
            with_user_pass(machine.passes, placed)
    except PassError as taken:
        raise SettingsError(f"--plugin: {source.named}: {taken.what}", taken.hint) from None
    return placed


def require_short(named: str, nbytes: int) -> None:
    """Nothing if a file can be a plugin by its size.

    Raises:
        SettingsError: it is too large.
    """
    if nbytes > MOST_NBYTES:
        raise SettingsError(
            f"--plugin: {named} has {nbytes:,} bytes, at most {MOST_NBYTES:,} are taken",
            "a Python file; data belong into the model",
        )


def _run(named: str, text: bytes) -> ModuleType:
    """The module that a text makes; its lines are known to whoever asks for a function's source."""
    require_short(named, len(text))
    module = ModuleType(f"tilefarm_plugin_{Digest.of(text).short}")
    module.__file__ = named
    sys.modules[module.__name__] = module  # Dataclasses and the like look for theirs there.
    module.__dict__["print"] = _print
    try:
        code = compile(text, named, "exec", dont_inherit=True)
        words = text.decode()
    except (SyntaxError, ValueError) as error:
        raise _unloadable(named, error) from None
    linecache.cache[named] = (len(words), None, words.splitlines(keepends=True), named)
    try:
        with patience(LOAD_SECONDS):
            exec(code, module.__dict__)
    except TilefarmError as error:
        first, *_ = error.what.splitlines()
        raise SettingsError(f"--plugin: {named}: {first}", error.hint) from None
    except OverdueError as late:
        raise SettingsError(
            f"--plugin: {named} is {late}", "no loop that waits for something outside of functions"
        ) from None
    except (Exception, SystemExit) as error:
        raise _unloadable(named, error) from None
    return module


def _print(*words: object, **how: Any) -> None:
    """What a plugin prints is for people: standard output is the command's, and may be JSON.

    Of the plugin alone: other threads write to standard output while its functions run.
    """
    how.setdefault("file", sys.stderr)
    print(*words, **how)


def _unloadable(named: str, error: BaseException) -> SettingsError:
    if isinstance(error, ModuleNotFoundError):
        hint = "install it; of what lies beside a plugin nothing is imported: put it into the file"
    elif named.endswith(".py"):
        hint = f"`python {named}` shows where it fails"
    else:
        hint = "see its package"
    return SettingsError(f"--plugin: {named} cannot be loaded: {failure(error, named)}", hint)
