"""Training with GRPO on TRL's GRPOTrainer: the prompts, sampler, verifier and run folder of ES, TRL's loss.

This is the only file that imports trl, and only when a run starts. What is TRL's and what is ours: docs/grpo.md.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from broadreach.config import Config
from broadreach.engines.select import build_engine, use_threads
from broadreach.models.distance import l2_norm
from broadreach.models.weights import export, load_model, named_tensors, parameter_count
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.tasks.grading import Grader
from broadreach.tasks.render import chat
from broadreach.training.curve import Curve
from broadreach.training.drift import drift_meter
from broadreach.training.environment import environment
from broadreach.training.grpo_checkpoint import checkpoint_dir, checkpoints_folder, resumable
from broadreach.training.grpo_plan import GrpoPlan, describe, make_plan
from broadreach.training.grpo_rollout import Rollouts
from broadreach.training.grpo_rows import UpdateSampler, cut, micro_batches, without_padding
from broadreach.training.grpo_session import Session, listener
from broadreach.training.metrics import MetricsFile
from broadreach.training.reporter import Reporter
from broadreach.training.restore import SMALL_MODEL
from broadreach.training.setup import Prepared, prepare
from broadreach.types import Centre, UserError

EXTRA_PACKAGES = ("trl", "accelerate", "datasets")


def train(config: Config, run: RunFolder, reporter: Reporter, origin: Path | None = None) -> None:
    """Train in `run`, or go on from its newest checkpoint; UserError for anything the user can mend.

    Leaves the files of an ES run, with checkpoints/ for ledger and snapshots (arXiv 2402.03300; method.md, (3), (4)).
    Drift is measured from the weights in `origin`, where the run is a later stage of a composition.
    """
    assert config.train.method == "grpo"
    _need_trl()
    prepared = prepare(config)
    plan = make_plan(config, prepared)
    if config.model.dtype == "float16":
        raise UserError("grpo trains in float32 or bfloat16: set model.dtype to one of them")
    with run.locked():
        resumed = run.claim(config)
        if run.finished_updates() >= prepared.total:
            reporter.note(f"{run.path} is finished: all {prepared.total} updates are done")
            return
        run.reopen()
        for note in (*prepared.notes, *describe(config, plan)):
            reporter.note(note)
        centre = _run_updates(config, run, prepared, plan, resumed, reporter, origin)
        export(centre, prepared.model_dir, run.export, config.model.dtype)
        run.mark_done({"updates": prepared.total, "digest": digest(centre)})


def policy_weights(model: Any) -> Centre:
    """The model's weights as float32 arrays by canonical name; on a CPU they are views, not copies."""
    return {name: tensor.float().cpu().numpy() for name, tensor in named_tensors(model).items()}


def _run_updates(
    config: Config,
    run: RunFolder,
    prepared: Prepared,
    plan: GrpoPlan,
    resumed: bool,
    reporter: Reporter,
    origin: Path | None,
) -> Centre:
    with ExitStack() as stack:
        stack.enter_context(_quiet_libraries())
        use_threads(config.engine.threads)
        model = load_model(prepared.model_dir, "float32").requires_grad_(True)
        start = policy_weights(model)
        base = digest(start)
        checkpoint = resumable(run, plan.steps, base, reporter) if resumed else None
        done = checkpoint.update if checkpoint else 0
        if resumed:
            reporter.note(f"resuming after update {done} (the newest checkpoint)")
        run.write_environment(_environment(base, start))
        metrics = MetricsFile(run.metrics_file)
        metrics.rewind(done)
        small = parameter_count(start) <= SMALL_MODEL
        drift = drift_meter(prepared.model_dir, {n: a.copy() for n, a in start.items()} if small else None, origin)
        grader = stack.enter_context(Grader(prepared.task, config.verify))
        engine = None
        if config.grpo.generation == "engine":
            engine = build_engine(config.engine, prepared.model_dir, config.model.dtype)
        rollouts = Rollouts(config, prepared, plan, engine, grader, lambda: policy_weights(model), reporter)
        curve = stack.enter_context(Curve(config, run, prepared.total, prepared.model_dir, reporter, engine))
        curve.rewind(done)
        session = Session(config, run, prepared.total, plan, rollouts, metrics, drift, curve, reporter, base)
        trainer = build_trainer(config, run, prepared, plan, model, rollouts, session)
        if done == 0:
            curve.after(0, start)
        reporter.start(done, prepared.total, plan.batch * plan.group)
        trainer.train(
            resume_from_checkpoint=str(checkpoint_dir(run, checkpoint.optimiser_step)) if checkpoint else None
        )
        return policy_weights(model)


def build_trainer(
    config: Config, run: RunFolder, prepared: Prepared, plan: GrpoPlan, model: Any, rollouts: Rollouts, session: Session
) -> Any:
    """TRL's trainer for a run; `model` must have been loaded from `prepared.model_dir`.

    TRL reads the KL reference from the directory the model was loaded from, so it is the run's (or stage's) own start.
    """
    from datasets import Dataset
    from transformers import PrinterCallback

    settings, task = config.grpo, prepared.task
    rows = [{"prompt": chat(task, problem, config.task.shots)} for problem in prepared.problems]
    trainer = _trainer_class()(
        model=model,
        reward_funcs=rollouts.rewards,
        args=_arguments(config, run, prepared, plan),
        train_dataset=Dataset.from_list(rows[:1]),
        processing_class=prepared.tokenizer,
        rollout_func=rollouts.generate if settings.generation == "engine" else None,
        callbacks=[listener(session)],
    )
    trainer.plan, trainer.prepared, trainer.rows = plan, prepared, rows
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(config: Config, run: RunFolder, prepared: Prepared, plan: GrpoPlan) -> Any:
    """Every choice of TRL's that changes the objective, written out: its defaults are not the GRPO of equation (4)."""
    import torch
    from trl import GRPOConfig

    settings, gpu = config.grpo, torch.cuda.is_available()
    return GRPOConfig(
        output_dir=str(checkpoints_folder(run)),
        seed=config.seed % 2**32,
        use_cpu=not gpu,
        bf16=config.model.dtype == "bfloat16",
        gradient_checkpointing=False,
        max_steps=prepared.total * plan.steps,
        per_device_train_batch_size=plan.micro_batch,
        gradient_accumulation_steps=plan.accumulation,
        steps_per_generation=plan.chunks_per_pass,
        num_generations=plan.group,
        num_iterations=plan.iterations,
        max_completion_length=config.sampling.max_new_tokens,
        temperature=settings.temperature,
        top_p=1.0,
        top_k=0,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        warmup_steps=0,
        weight_decay=0.0,
        max_grad_norm=settings.max_grad_norm,
        loss_type=settings.loss,
        beta=settings.beta,
        epsilon=settings.epsilon,
        epsilon_high=settings.epsilon_high,
        scale_rewards=settings.scale_rewards,
        importance_sampling_level=settings.ratio,
        mask_truncated_completions=settings.mask_truncated,
        use_bias_correction_kl=False,
        vllm_importance_sampling_correction=False,
        disable_dropout=True,
        shuffle_dataset=False,
        logging_strategy="steps",
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )


def _trainer_class() -> type[Any]:
    """TRL's trainer over our batches; what is changed is which rows come when, never the loss of a response."""
    from torch.utils.data import DataLoader
    from trl import GRPOTrainer

    class BatchTrainer(GRPOTrainer):
        """One generation an update, over the batch that ES sees at the same update."""

        plan: GrpoPlan
        prepared: Prepared
        rows: list[dict[str, Any]]

        def get_train_dataloader(self) -> Any:
            rows: Any = self.rows
            return DataLoader(rows, batch_sampler=UpdateSampler(self.plan, self.prepared), collate_fn=list)

        def _prepare_inputs(self, batch: list[dict[str, Any]]) -> dict[str, Any]:
            position = self._step % self.plan.chunks_per_pass
            if self._step % (self.plan.chunks_per_pass * self.plan.iterations) == 0:
                scored = self._generate_and_score_completions([dict(row) for row in batch])
                self._buffered_inputs = cut(scored, self.plan)
            return self._buffered_inputs[position]

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **options: Any
        ) -> Any:
            score = partial(_score, super()._get_per_token_logps_and_entropies, model, options)
            whole = options.pop("batch_size", None) is not None
            lengths = attention_mask.sum(1)
            parts = [rows for rows, _ in micro_batches(lengths, self.plan)] if whole else [lengths.argsort(stable=True)]
            return without_padding(score, input_ids, attention_mask, logits_to_keep, parts)

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            loss = super()._compute_loss(model, inputs)
            weight = inputs["chunk_weight"]
            return loss if weight == 1.0 or self.loss_type == "dapo" else loss * weight

        def create_model_card(self, *_: Any, **__: Any) -> None:
            """None: config.toml and docs say what this run is."""

    return BatchTrainer


def _score(inner: Any, model: Any, options: dict[str, Any], ids: Any, mask: Any, kept: int) -> Any:
    return inner(model, ids, mask, kept, **options)


def _need_trl() -> None:
    missing = [name for name in EXTRA_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"grpo needs {', '.join(missing)}, not installed here: pip install 'broadreach[grpo]'")
    import torch

    if torch.cuda.device_count() > 1 and "LOCAL_RANK" not in os.environ:
        raise UserError("grpo trains on one GPU here and several are visible: set CUDA_VISIBLE_DEVICES=0")


def _environment(base_digest: str, start: Centre) -> dict[str, Any]:
    facts = environment(base_digest, parameter_count(start), l2_norm(start))
    facts["versions"].update({name: importlib.metadata.version(name) for name in EXTRA_PACKAGES})
    return facts


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """No advice and no bars from transformers and TRL on top of our own."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"(trl|transformers|accelerate|torch)\.")
            warnings.filterwarnings("ignore", message=".*rollout_func.*")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
