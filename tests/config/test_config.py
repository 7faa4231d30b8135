"""Settings: layering, overrides, and errors that name the key."""

import pytest

from broadreach.config import Config, build_config, load_config, to_toml
from broadreach.experiments.catalogue import recipe_names, resolve
from broadreach.types import UserError


def write(path, text):
    path.write_text(text)
    return path


def test_later_files_and_overrides_win(tmp_path):
    first = write(tmp_path / "a.toml", "seed = 1\n[es]\nsigma = 0.5\nalpha = 0.1\n")
    second = write(tmp_path / "b.toml", "[es]\nsigma = 0.25\n")
    config = load_config([first, second], ["es.alpha=0.2", "task.name=gsm8k"])
    assert (config.seed, config.es.sigma, config.es.alpha, config.task.name) == (1, 0.25, 0.2, "gsm8k")


def test_resolved_toml_round_trips(tmp_path):
    config = load_config([], ["task.options={path='x.jsonl', family='exact'}", "train.updates=3", "run.dir=runs/a b"])
    assert load_config([write(tmp_path / "c.toml", to_toml(config))]) == config


def test_an_unknown_key_offers_the_nearest_name_and_its_file(tmp_path):
    path = write(tmp_path / "a.toml", "[es]\nsigmaa = 0.5\n")
    with pytest.raises(UserError, match=r"unknown key es\.sigmaa \(from .*a\.toml\); did you mean es\.sigma\?"):
        load_config([path])


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("es.sigma=0", "es.sigma .*greater than 0"),
        ("es.sigma=-1e-3", "es.sigma"),
        ("es.alpha=0", "es.alpha"),
        ("es.population=0", "es.population .*greater than or equal to 1"),
        ("es.estimator=three_point", "es.estimator .*one_point"),
        ("train.batch=many", "train.batch .*integer"),
        ("nothing", "section.key=value"),
        ("populaton=3", "unknown key populaton"),
        ("es.anchor_decay=1.5", "es.anchor_decay"),
    ],
)
def test_bad_values_are_one_clear_line(override, words):
    with pytest.raises(UserError, match=words) as caught:
        load_config([], [override])
    assert "\n" not in str(caught.value)


def test_broken_toml_names_file_and_line(tmp_path):
    with pytest.raises(UserError, match=r"a\.toml is not valid TOML: .*line 2"):
        load_config([write(tmp_path / "a.toml", "[es]\nsigma = = 3\n")])


def test_missing_file_is_named():
    with pytest.raises(UserError, match=r"nowhere\.toml does not exist"):
        resolve(["nowhere.toml"])


def test_an_unknown_recipe_offers_the_nearest():
    with pytest.raises(UserError, match="did you mean smollm2-svamp"):
        resolve(["smolm2-svamp"])


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Config().seed = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_resolves(name):
    assert resolve([name]).run.dir == f"runs/{name}"


def test_the_papers_recipes_have_the_papers_numbers():
    easy, hard = resolve(["easy-qwen2.5-1.5b"]), resolve(["hard"])
    for config in (easy, hard):
        assert (config.es.population, config.es.sigma, config.es.alpha) == (32, 1.5e-3, 2.5e-4)
        assert (config.train.batch, config.eval.samples, config.eval.temperature) == (64, 32, 0.6)
    assert (easy.train.epochs, easy.sampling.temperature, easy.sampling.max_new_tokens) == (2, 0.0, 2048)
    assert (hard.train.epochs, hard.sampling.temperature, hard.sampling.max_new_tokens) == (1, 0.6, 8192)


def test_values_from_python():
    assert build_config({"es": {"sigma": 0.1}}).es.sigma == 0.1
