"""Settings of a run: pydantic models (frozen, extra keys forbidden), read from layered TOML."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from broadreach.types import UserError


class Settings(BaseModel):
    """Base of every section: immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(Settings):
    path: str = "nano"
    """`nano` (bundled), `smollm2` (see scripts/fetch_smollm2.py), a Hugging Face directory, or a Hub id."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type of the served weights; the centre is always float32."""


class TaskSettings(Settings):
    name: str = "nano-chain"
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the task's constructor."""
    shots: int = Field(default=0, ge=0)
    """Worked examples shown as chat turns before the question."""
    reward: str | None = None
    """`package.module:function` with TRL's reward-function signature; replaces the task's own verifier."""
    allow_overlap: bool | tuple[str, ...] = ()
    """Test sets whose problems may be trained on, by name (`broadreach tasks check` lists them); true: all of them."""
    allow_duplicates: bool | tuple[str, ...] = ()
    """Data sets whose repeated training problems may be trained on, by name; true: the one in use."""
    max_train: int | None = Field(default=None, ge=1)
    """Use only the first so many training problems."""

    @field_validator("allow_overlap", "allow_duplicates", mode="before")
    @classmethod
    def _one_name(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) and value.lower() not in ("true", "false") else value


Schedule = Literal["constant", "linear", "cosine"]


class EsSettings(Settings):
    population: int = Field(default=32, ge=1)
    """Noise directions N of one update; two-point evaluates 2N members."""
    sigma: float = Field(default=1.5e-3, gt=0)
    alpha: float = Field(default=2.5e-4, gt=0)
    """Step size of equation (7); it absorbs 1/sigma."""
    sigma_schedule: Schedule = "constant"
    alpha_schedule: Schedule = "constant"
    final_fraction: float = Field(default=0.1, ge=0, le=1)
    """Where a linear or cosine schedule ends, as a share of the first value."""
    estimator: Literal["one_point", "two_point"] = "one_point"
    shaping: Literal["z_score", "none", "centred_ranks"] = "z_score"
    reward_std_floor: float = Field(default=1e-8, ge=0)
    """A population whose reward spread is not above this makes no update."""
    anchor_decay: float = Field(default=0.0, ge=0, lt=1)
    """Share of the way back to the base weights taken at each update."""
    precision: Literal["exact", "paper"] = "exact"

    @property
    def evaluations(self) -> int:
        """Members evaluated in one update."""
        return self.population * (2 if self.estimator == "two_point" else 1)


GRPO_PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "deepseekmath": {"group_size": 64, "mini_batch": 0, "beta": 0.04},
    "dapo": {"loss": "dapo", "group_size": 16, "beta": 0.0, "epsilon_high": 0.28, "mask_truncated": True},
    "dr_grpo": {"loss": "dr_grpo", "scale_rewards": "none", "beta": 0.0},
}


class GrpoSettings(Settings):
    """Defaults are the paper's; keys that are not given take the preset's value (docs/grpo.md)."""

    preset: Literal["paper", "deepseekmath", "dapo", "dr_grpo"] = "paper"
    group_size: int = Field(default=8, ge=1)
    """Responses to each prompt, G of equation (3)."""
    mini_batch: int = Field(default=32, ge=0)
    """Prompts of one optimiser step; it divides train.batch. 0: the whole batch."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Responses of one forward and backward pass (memory only); default: what keeps it within 4,096 tokens."""
    iterations: int = Field(default=1, ge=1)
    learning_rate: float = Field(default=1e-6, gt=0)
    schedule: Schedule = "constant"
    max_grad_norm: float = Field(default=1.0, gt=0)
    loss: Literal["grpo", "dapo", "dr_grpo"] = "grpo"
    beta: float = Field(default=0.001, ge=0)
    """KL coefficient; the reference is the model that the run (or stage) starts from."""
    epsilon: float = Field(default=0.2, gt=0)
    epsilon_high: float | None = Field(default=None, gt=0)
    scale_rewards: Literal["group", "batch", "none"] = "group"
    ratio: Literal["token", "sequence"] = "token"
    mask_truncated: bool = False
    """Leave responses that hit the length limit out of the loss."""
    temperature: float = Field(default=1.0, gt=0)
    generation: Literal["engine", "trl"] = "engine"
    """`engine`: our decoding loop and seeded sampler, as ES; `trl`: TRL's own generate()."""
    keep_middle: bool = True
    """Keep the weights of the half-way update: a composition can start from them."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, values: Any) -> Any:
        preset = values.get("preset", "paper") if isinstance(values, Mapping) else None
        return {**GRPO_PRESETS[preset], **values} if preset in GRPO_PRESETS else values


class StageSettings(Settings):
    method: Literal["es", "grpo"]
    updates: int | None = Field(default=None, ge=1)
    set: dict[str, Any] = Field(default_factory=dict)
    """What else differs in this stage, for example { "task.name" = "nano-countdown" }."""


class TrainSettings(Settings):
    method: Literal["es", "grpo"] = "es"
    stages: tuple[StageSettings, ...] = ()
    """Methods one after the other: "es->grpo", ["grpo", "es"], or tables with `method`, `updates` and `set`."""
    stage_split: Literal["updates", "responses"] = "updates"
    """What stages without their own `updates` get equal shares of."""
    reuse: bool = True
    """Take a first stage that a finished run beside this one already trained."""
    data_seed: int | None = Field(default=None, ge=0)
    """Seed of the order of problems; default: `seed`."""
    skip_batches: int = Field(default=0, ge=0)
    """Start so many batches into that order (a later stage goes on where the one before stopped)."""
    batch: int = Field(default=64, ge=1)
    """Problems in the shared mini-batch of one update."""
    updates: int | None = Field(default=None, ge=1)
    """Stop after so many updates; otherwise `epochs` decides."""
    epochs: int = Field(default=1, ge=1)
    shuffle: bool = True
    keep_tail: bool = True
    """Keep the short last batch of an epoch (the paper does)."""
    stop_when_idle: int = Field(default=3, ge=0)
    """Stop with advice when the first so many updates all had equal rewards; 0 waits for ever."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Training problems with longer prompts are left out and counted."""

    @field_validator("stages", mode="before")
    @classmethod
    def _split_arrows(cls, value: Any) -> Any:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            return value
        parts = [part for item in items for part in (item.split("->") if isinstance(item, str) else [item])]
        return [{"method": part.strip()} if isinstance(part, str) else part for part in parts]


class SamplingSettings(Settings):
    temperature: float = Field(default=0.0, ge=0)
    max_new_tokens: int = Field(default=64, ge=1)
    seeds: Literal["independent", "common"] = "independent"
    """Whether members share the sampling noise."""


class EngineSettings(Settings):
    kind: Literal["auto", "hf", "population", "fake"] = "auto"
    memory_gb: float = Field(default=4.0, gt=0)
    """Budget of the population engine for member weights and caches; it chooses the member chunks."""
    rows: int = Field(default=1024, ge=1)
    """Most sequences decoded at once."""
    threads: int | None = Field(default=None, ge=1)


class VerifySettings(Settings):
    workers: int = Field(default=2, ge=1)
    deadline: float | None = Field(default=None, gt=0)
    """Seconds one verdict may take; default: 5, and for a program 25, of them 10 of processor time, or its task's."""
    memory_gb: float = Field(default=2.0, gt=0)
    allow_unsandboxed: bool = False
    """Run model-written code without bubblewrap; written into every report."""


class EvalSettings(Settings):
    split: str = "test"
    samples: int = Field(default=32, ge=1)
    temperature: float = Field(default=0.6, ge=0)
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Default: the training value."""
    problems: int | None = Field(default=None, ge=1)
    """Only the first so many problems of the split."""
    seed: int = 1
    greedy: bool = False
    """Draw one greedy response a problem besides, into a store of its own."""
    entropy: bool = False
    """Measure the token entropy besides, by teacher forcing on the kept responses."""
    curve_every: int = Field(default=0, ge=0)
    """Evaluate during training after every so many updates, before the first and after the last (0: never)."""
    curve_at: tuple[int, ...] = ()
    """Evaluate during training after these updates (0: before the first)."""
    curve_tasks: tuple[str, ...] = ()
    """Tasks of the evaluations during training; default: the training task."""
    curve_problems: int = Field(default=64, ge=1)
    """The first so many problems of `split`, always the same."""
    curve_samples: int = Field(default=32, ge=1)

    @field_validator("curve_at", "curve_tasks", mode="before")
    @classmethod
    def _split_commas(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return [value] if isinstance(value, int) else value


class RunSettings(Settings):
    dir: str | None = None
    """Run folder; default runs/<recipe or task>-seed<seed>."""
    snapshot_every: int = Field(default=20, ge=1)
    """Updates between float32 snapshots (resume replays the ledger from the last one)."""
    keep_snapshots: int = Field(default=2, ge=1)
    """Older snapshots are removed; the ledger rebuilds any step without them."""
    digest_every: int = Field(default=1, ge=1)
    keep_responses: bool = False
    """Store every training response under samples/train.jsonl."""


class Config(Settings):
    """Everything that fixes a run."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    model: ModelSettings = ModelSettings()
    task: TaskSettings = TaskSettings()
    es: EsSettings = EsSettings()
    grpo: GrpoSettings = GrpoSettings()
    train: TrainSettings = TrainSettings()
    sampling: SamplingSettings = SamplingSettings()
    engine: EngineSettings = EngineSettings()
    verify: VerifySettings = VerifySettings()
    eval: EvalSettings = EvalSettings()
    run: RunSettings = RunSettings()

    @model_validator(mode="after")
    def _check_pairs(self) -> Config:
        if self.es.shaping == "centred_ranks" and self.es.evaluations < 2:
            raise ValueError("centred_ranks needs at least two evaluated members: raise es.population")
        if self.es.precision == "paper" and self.es.anchor_decay > 0:
            raise ValueError("es.anchor_decay is not part of the published arithmetic: use es.precision = 'exact'")
        return self


def load_config(paths: Sequence[str | Path] = (), overrides: Sequence[str] | Mapping[str, Any] = ()) -> Config:
    """Merge TOML files left to right, then `a.b=c` overrides; UserError names the bad key and its place."""
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for path in paths:
        _merge(merged, _read_toml(path), origin, str(path))
    items = overrides.items() if isinstance(overrides, Mapping) else [_split(item) for item in overrides]
    for key, value in items:
        nested: dict[str, Any] = {}
        _assign(nested, key, value)
        _merge(merged, nested, origin, f"--set {key}")
    return build_config(merged, origin)


def build_config(values: Mapping[str, Any], origin: Mapping[str, str] | None = None) -> Config:
    """Validate plain nested values into a Config; UserError lists every bad key, nearest name offered."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        lines = [_explain(item, origin or {}) for item in error.errors()]
        raise UserError("configuration: " + "; ".join(lines)) from None


def to_toml(config: Config) -> str:
    """The resolved configuration as TOML, every key written out (None is left out: TOML has no null)."""
    values = config.model_dump()
    lines = [f"{key} = {_toml_value(value)}" for key, value in values.items() if not isinstance(value, dict)]
    for section, entries in values.items():
        if isinstance(entries, dict):
            lines += ["", f"[{section}]"]
            lines += [f"{key} = {_toml_value(value)}" for key, value in entries.items() if value is not None]
    return "\n".join(lines) + "\n"


def flatten(config: Config) -> dict[str, Any]:
    """The configuration as `section.key -> value`."""
    flat: dict[str, Any] = {}
    for key, value in config.model_dump().items():
        if isinstance(value, dict):
            flat.update({f"{key}.{name}": entry for name, entry in value.items()})
        else:
            flat[key] = value
    return flat


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        entries = ", ".join(f"{json.dumps(k)} = {_toml_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _read_toml(path: str | Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise UserError(f"configuration file {path} does not exist; give a TOML file or the name of a recipe") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a directory; give a TOML file or the name of a recipe") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None


def _split(item: str) -> tuple[str, Any]:
    key, separator, text = item.partition("=")
    if not separator or not key.strip():
        raise UserError(f"--set {item}: write it as section.key=value, for example --set es.sigma=0.001")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    return key.strip(), value


def _assign(target: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for name in parents:
        target = target.setdefault(name, {})
    target[last] = value


def _merge(
    base: dict[str, Any], extra: Mapping[str, Any], origin: dict[str, str], source: str, prefix: str = ""
) -> None:
    for key, value in extra.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value, origin, source, f"{dotted}.")
        elif isinstance(value, Mapping):
            base[key] = {}
            _merge(base[key], value, origin, source, f"{dotted}.")
        else:
            base[key] = value
            origin[dotted] = source


def _explain(item: Any, origin: Mapping[str, str]) -> str:
    location = ".".join(str(part) for part in item["loc"])
    place = f" (from {origin[location]})" if location in origin else ""
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(location, _known_keys(), n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else f"; known sections: {', '.join(Config.model_fields)}"
        return f"unknown key {location}{place}{hint}"
    message = item["msg"].removeprefix("Value error, ")
    given = f", got {item['input']!r}" if not isinstance(item["input"], dict | Config) else ""
    return f"{location}{place}: {message}{given}" if location else message


def _known_keys() -> list[str]:
    keys = list(Config.model_fields)
    for section, info in Config.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            keys += [f"{section}.{name}" for name in info.annotation.model_fields]
    return keys
