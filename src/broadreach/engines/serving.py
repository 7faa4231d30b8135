"""The weights that an engine serves in place: perturb from the centre, restore by copying, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeAlias

from torch import Tensor

from broadreach.engines.digest import served_digest
from broadreach.models.weights import assign
from broadreach.noise.paper_precision import paper_perturb_, paper_restore_
from broadreach.noise.perturb import perturb_into
from broadreach.types import Centre, Member, Perturbation, UserError

Precision: TypeAlias = Literal["exact", "paper"]


class ServedWeights:
    """Tensors that hold cast(centre), or one member at a time.

    `precision="exact"` restores by copying from the centre. `precision="paper"` adds and subtracts in the tensors' own
    type as published, so what is served drifts: that is what it is for.
    """

    def __init__(self, tensors: Mapping[str, Tensor], parameters: int, precision: Precision = "exact") -> None:
        self.tensors = dict(tensors)
        self.parameters = parameters
        """How many weights the model has, counted on its own: every perturbation must write so many."""
        self.precision = precision
        self.noise_seconds = 0.0
        self._centre: Centre | None = None

    def load(self, centre: Centre) -> None:
        """Serve cast(centre) and remember the centre (not a copy); UserError when it is not this model's."""
        assign(self.tensors, centre)
        self._centre = centre

    def centre(self) -> Centre:
        """The centre last loaded; UserError when there is none."""
        if self._centre is None:
            raise UserError("the engine serves no weights yet; call load(centre) first")
        return self._centre

    def digest(self) -> str:
        """xxh3-128 over what is served now."""
        return served_digest(self.tensors)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Serve the centre again at the end, exceptions included.

        A perturbation writes whole tensors from the centre, so between members nothing needs restoring.
        """
        centre = self.centre()
        try:
            yield
        finally:
            if self.precision == "exact":
                with self._timed():
                    assign(self.tensors, centre)

    @contextmanager
    def member(self, member: Member, perturbation: Perturbation) -> Iterator[None]:
        """Serve one member inside this block (and inside `restored`)."""
        exact = self.precision == "exact"
        with self._timed():
            if exact:
                written = perturb_all(self.centre(), self.tensors, member, perturbation)
                check_count(written, self.parameters)
            else:
                self._walk(paper_perturb_, member, perturbation)
        try:
            yield
        finally:
            if not exact:
                with self._timed():
                    self._walk(paper_restore_, member, perturbation)

    def _walk(self, move: Callable[..., None], member: Member, perturbation: Perturbation) -> None:
        """The published arithmetic: add or subtract the noise in the served type, tensor by tensor."""
        if member.sign != 0:
            for name, tensor in self.tensors.items():
                move(tensor, name=name, **noise_of(member, perturbation))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.noise_seconds += time.perf_counter() - start


def noise_of(member: Member, perturbation: Perturbation) -> dict[str, int | float]:
    """What fixes the noise of one member, as the keyword arguments of the noise room."""
    return {
        "seed": perturbation.seed,
        "step": perturbation.step,
        "direction": member.direction,
        "sign": member.sign,
        "sigma": perturbation.sigma,
    }


def perturb_all(centre: Centre, outputs: Mapping[str, Tensor], member: Member, perturbation: Perturbation) -> int:
    """Write one member's weights into the outputs, by canonical name; returns how many weights were written."""
    written = 0
    for name, out in outputs.items():
        perturb_into(centre[name], out, name=name, **noise_of(member, perturbation))  # type: ignore[arg-type]
        written += out.numel()
    return written


def check_count(written: int, parameters: int) -> None:
    """UserError unless every weight of the model was written."""
    if written != parameters:
        raise UserError(
            f"{written} weights were perturbed, but the model has {parameters}: some of its weights are out of reach;"
            " this model cannot be trained"
        )
