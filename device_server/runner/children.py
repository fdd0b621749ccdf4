"""Where runner children come from: a zygote that is kept alive, on a thread that lives as long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tilefarm.closing import Closing
from tilefarm.errors import InfraError, TargetError
from tilefarm.target import Target

from device_server.runner.accelerator import AcceleratorProcess
from device_server.runner.child import RunnerChild
from device_server.runner.connection import ChildGone, ChildSilent
from device_server.runner.frames import FailedReply, Fault, Ready, Request
from device_server.runner.verdicts import death
from device_server.runner.zygote import RunnerLimits, Zygote


class LibraryError(Exception):
    """The library that kernels run on cannot be loaded; none will ever run here."""


class Children(Closing):
    """Gives children of one accelerator; starts their zygote when the first one is asked for.

    Everything that starts a process raises:
        LibraryError: the library cannot be loaded.
        TargetError: no hardware can have the target's parameters.
        InfraError: no process can be started, or it does not speak as it should.
    """

    def __init__(
        self,
        target: Target,
        *,
        library: Path,
        executable: Path,
        limits: RunnerLimits,
        environment: Mapping[str, str],
    ) -> None:
        self._target = target
        self._library = library
        self._executable = executable
        self._limits = limits
        self._environment = environment
        self.zygote: Zygote | None = None
        self._ready: Ready | None = None
        # They die with the thread that started the zygote (PR_SET_PDEATHSIG), so that one lives as
        # long as this does.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="runner-start")

    def ready(self) -> Ready:
        """What children are, in the zygote's words."""
        if self._ready is None:
            self._living()
        assert self._ready is not None
        return self._ready

    def child(
        self, first: Sequence[Request] = (), accelerator: AcceleratorProcess | None = None
    ) -> RunnerChild:
        """A new child, which finds its `first` requests as soon as it lives.

        Args:
            accelerator: one that is free, which the child has from now on; None for a new one.
        """
        try:
            return self._spawned(first, accelerator)
        except (ChildGone, ChildSilent):
            self._drop()  # Somebody has killed it: the next one may live.
        try:
            return self._spawned(first, None)
        except (ChildGone, ChildSilent):
            raise self._silent() from None

    def close(self) -> None:
        """End the zygote. May be called again."""
        self._drop()
        self._starter.shutdown()

    def _spawned(
        self, first: Sequence[Request], accelerator: AcceleratorProcess | None
    ) -> RunnerChild:
        with ExitStack() as owned:
            if accelerator is not None:
                owned.enter_context(accelerator)
            zygote = self._living()
            assert self._ready is not None
            if accelerator is None and self._ready.apart:
                accelerator = zygote.accelerator(self._limits.start_seconds)
                owned.enter_context(accelerator)
            child = zygote.spawn(self._limits.start_seconds, first, accelerator)
            owned.pop_all()
        return child

    def _living(self) -> Zygote:
        if self.zygote is None:
            self.zygote = self._starter.submit(self._start).result()
        return self.zygote

    def _start(self) -> Zygote:
        try:
            zygote = Zygote(self._executable, self._library, self._limits, self._environment)
        except OSError as error:
            raise InfraError(f"cannot start {self._executable}: {error.strerror}") from None
        try:
            self._ready = self._introduced(zygote)
        except (ChildGone, ChildSilent):
            why = zygote.last_words()
            zygote.close()
            raise InfraError(f"{self._executable} does not start: {why}") from None
        except BaseException:
            zygote.close()
            raise
        return zygote

    def _introduced(self, zygote: Zygote) -> Ready:
        """Hear the zygote's first words and tell it which accelerator it is."""
        hello = zygote.hello(self._limits.start_seconds)
        if not isinstance(hello, Ready):
            if isinstance(hello, FailedReply):
                raise LibraryError(hello.why)
            if isinstance(hello, Fault):
                why = death(hello.signal, -hello.signal, hello).why
                wrote = zygote.last_words()
                words = f"{why}; it wrote: {wrote}" if wrote else why
                raise LibraryError(f"the library {self._library} cannot be loaded: {words}")
            raise InfraError(f"{self._executable} does not start: {hello}")
        ready = zygote.configure(self._target, self._limits.start_seconds)
        if isinstance(ready, FailedReply):
            raise TargetError(
                f"{self._target.name}: {ready.why}",
                "`tilefarm targets --show sim` prints one that is",
            )
        if not isinstance(ready, Ready):
            raise InfraError(f"{self._executable} does not take a configuration: {ready}")
        return ready

    def _silent(self) -> InfraError:
        why = self.zygote.last_words() if self.zygote is not None else ""
        self._drop()
        return InfraError(f"{self._executable} makes no child: {why or 'it does not answer'}")

    def _drop(self) -> None:
        if self.zygote is not None:
            self.zygote.close()
        self.zygote = None
