"""What a job is: the settings of a tuning as plain values, and the files that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Final

from tilefarm.code import code_digest
from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded
from tilefarm.errors import (
    CorruptBlobError,
    ModelError,
    ProtocolError,
    SettingsError,
)
from tilefarm.readable import readable
from tilefarm.sandbox import SandboxLevel
from tilefarm.system_errors import unreadable

from driver.environment import versions
from driver.farm.settings import FarmSettings
from driver.network import Quantization
from driver.tune.settings import TuneSettings

_PATHS: Final = ("token_file", "tls", "signing_key")
_OF_THE_RUN: Final = ("proposer", "seed")
"""What, beside files, quantization and extents, makes two jobs the same run."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that goes with a job: its name, for people, and its content."""

    name: str
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A tuning that somebody else's machine is asked for.

    Attributes:
        title: the model's name, for people.
        settings: `TuneSettings` without its files, as plain values. Paths of tokens and
            certificates are those of the machine that runs it: no secret travels.
        files: by field: model, calibrate, evaluate, and target where it is a file.
        beside: files with weights of the model, by the names that it has for them.
        plugins: Python files of the user's, in the order in which they were named.
        version, code: of who asks; who runs it must have the same code.
    """

    title: str
    settings: Mapping[str, Any]
    files: Mapping[str, SentFile]
    beside: Mapping[str, Digest]
    plugins: tuple[SentFile, ...]
    version: str
    code: Digest

    @classmethod
    def of(
        cls, settings: TuneSettings, title: str, beside: Mapping[str, Path] | None = None
    ) -> tuple[JobSpec, dict[Digest, Path]]:
        """The job of settings, and where its files are.

        Args:
            settings: of the tuning.
            title: the model's name.
            beside: files with weights of the model, by the names that it has for them.

        Raises:
            DataError: a file cannot be read.
            SettingsError: the name of a file of the head is no text.
            ModelError: a file beside the model has a name that would be another file there.
        """
        beside = beside or {}
        for name in beside:
            if not _is_below(name):
                raise ModelError(
                    f"{settings.model}: external data {name!r}: not a plain path below the model's"
                    " folder, so it would be another file on the cluster",
                    "save the model again, with weights beside it",
                )
        paths = {"model": settings.model}
        paths |= {"calibrate": settings.calibrate} if settings.calibrate else {}
        paths |= {"evaluate": settings.evaluate} if settings.evaluate else {}
        if settings.farm.target.endswith(".json"):
            paths["target"] = Path(settings.farm.target)
        files = {
            field: SentFile(readable(path.name), _digest_of(path)) for field, path in paths.items()
        }
        weights = {name: _digest_of(path) for name, path in beside.items()}
        plugins = [SentFile(readable(path.name), _digest_of(path)) for path in settings.plugins]
        spec = cls(
            title=readable(title),
            settings=_plain(settings),
            files=files,
            beside=weights,
            plugins=tuple(plugins),
            version=versions()["tilefarm"],
            code=code_digest(),
        )
        found = {files[field].digest: path for field, path in paths.items()}
        found |= {weights[name]: path for name, path in beside.items()}
        sent = zip(plugins, settings.plugins, strict=True)
        return spec, found | {plugin.digest: path for plugin, path in sent}

    @property
    def run(self) -> str:
        """The name of its run: jobs that differ in less than what decides the results share it."""
        settings = {name: self.settings[name] for name in (*_OF_THE_RUN, "extents", "quantization")}
        if self.settings["max_loss"] is not None:
            settings["max_loss"] = self.settings["max_loss"]
        contents = {field: sent.digest.hex for field, sent in self.files.items()}
        contents |= {f"beside/{name}": digest.hex for name, digest in self.beside.items()}
        contents |= {f"plugin/{at}": each.digest.hex for at, each in enumerate(self.plugins)}
        target = "" if "target" in self.files else self.settings["farm"]["target"]
        return Digest.of_json([settings, contents, target]).short

    def to_json(self) -> str:
        """The one text of it."""
        return canonical_json(
            {
                "title": self.title,
                "settings": self.settings,
                "files": {
                    field: [sent.name, sent.digest.hex] for field, sent in self.files.items()
                },
                "beside": {name: digest.hex for name, digest in self.beside.items()},
                "plugins": [[each.name, each.digest.hex] for each in self.plugins],
                "version": self.version,
                "code": self.code.hex,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """The job that `to_json` wrote.

        Raises:
            ProtocolError: it is none.
        """
        try:
            document = decoded(text)
            return cls(
                title=document["title"],
                settings=document["settings"],
                files={field: _sent(each) for field, each in document["files"].items()},
                beside={_below(name): Digest(hex) for name, hex in document["beside"].items()},
                plugins=tuple(map(_sent, document.get("plugins", ()))),
                version=document["version"],
                code=Digest(document["code"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ProtocolError(f"not a job: {error!r}", "`tilefarm submit` writes them") from None

    def require_same_code(self) -> None:
        """Nothing if this installation is the one that the job was made by.

        Raises:
            SettingsError: it is another.
        """
        here = code_digest()
        if here == self.code:
            return
        raise SettingsError(
            f"the cluster runs tilefarm {versions()['tilefarm']} (code {here.short}), the job is"
            f" from {self.version} (code {self.code.short})",
            "install one version on both sides",
        )

    def tune_settings(self, bundle: Path, inputs: Path, out: Path) -> TuneSettings:
        """The settings of the run, on the machine that runs it.

        Args:
            bundle: the folder with its files, by digest.
            inputs: gets them under their names.
            out: the run's output folder.

        Raises:
            CorruptBlobError: a file is not there, or not what it should be.
            ProtocolError: the settings are no settings.
            SettingsError: they are impossible here.
        """
        paths: dict[str, Any] = {
            field: _placed(sent, bundle, inputs / field) for field, sent in self.files.items()
        }
        for name, digest in self.beside.items():
            _placed(SentFile(name, digest), bundle, paths["model"].parent)
        plugins = [
            _placed(each, bundle, inputs / f"plugin{at}") for at, each in enumerate(self.plugins)
        ]
        try:
            farm = dict(self.settings["farm"])
            farm["labels"] = tuple((key, value) for key, value in farm["labels"])
            if farm.get("require_sandbox") is not None:
                farm["require_sandbox"] = SandboxLevel(farm["require_sandbox"])
            farm |= {name: Path(farm[name]) for name in _PATHS if farm[name] is not None}
            target = str(paths.pop("target", farm["target"]))
            return TuneSettings(
                **paths,
                out=out,
                plugins=tuple(plugins),
                trials=self.settings["trials"],
                judge=self.settings["judge"],
                max_loss=self.settings["max_loss"],
                lookahead=self.settings["lookahead"],
                least_gain=self.settings.get("least_gain", 0.0),
                search_seconds=self.settings.get("search_seconds"),
                device_seconds=self.settings.get("device_seconds"),
                **{name: self.settings[name] for name in _OF_THE_RUN},
                extents={name: tuple(e) for name, e in self.settings["extents"].items()},
                quantization=_quantization(self.settings["quantization"]),
                farm=FarmSettings(**{**farm, "target": target}),
            )
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ProtocolError(f"not the settings of a job: {error!r}") from None


def _plain(settings: TuneSettings) -> dict[str, Any]:
    farm = {f.name: getattr(settings.farm, f.name) for f in fields(settings.farm)}
    farm |= {name: _named(name, farm[name]) for name in _PATHS if farm[name] is not None}
    farm["target"] = readable(farm["target"])
    return {
        "trials": settings.trials,
        "judge": settings.judge,
        "max_loss": settings.max_loss,
        "lookahead": settings.lookahead,
        "least_gain": settings.least_gain,
        "search_seconds": settings.search_seconds,
        "device_seconds": settings.device_seconds,
        **{name: getattr(settings, name) for name in _OF_THE_RUN},
        "extents": {name: list(extents) for name, extents in settings.extents.items()},
        "quantization": asdict(settings.quantization),
        "farm": farm,
    }


def _named(field: str, path: Path) -> str:
    """The path of a file of the head, as text."""
    if readable(path) == str(path):
        return str(path)
    raise SettingsError(
        f"--{field.replace('_', '-')} {readable(path)}: not a name in UTF-8, so it cannot be sent",
        "give the file another name on the cluster's head",
    )


def _quantization(document: Mapping[str, Any]) -> Quantization:
    names = {field: document[field] for field in ("keep_float", "wide", "wide_activations")}
    tuples = {field: None if given is None else tuple(given) for field, given in names.items()}
    return Quantization(**{**document, **tuples})


def _sent(row: tuple[str, str]) -> SentFile:
    name, digest = row
    return SentFile(Path(name).name, Digest(digest))


def _below(name: str) -> str:
    """The name, if it stays below whatever folder it is put in; for those that others chose."""
    if not _is_below(name):
        raise ValueError(f"{name!r} is not below the model's folder")
    return name


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _digest_of(path: Path) -> Digest:
    try:
        return Digest.of_file(path)
    except OSError as error:
        raise unreadable(path, error, "name a file that you can read") from None


def _placed(sent: SentFile, bundle: Path, folder: Path) -> Path:
    """A file of the bundle, verified, under its name."""
    try:
        content = (bundle / sent.digest.hex).read_bytes()
    except OSError:
        content = b""
    if Digest.of(content) != sent.digest:
        raise CorruptBlobError(
            f"{sent.name} did not arrive as {sent.digest.short}", "submit the job again"
        )
    path = folder / sent.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
