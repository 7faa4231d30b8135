"""A user's mistake is one clear line, exit code 2, no traceback, and nothing is lost."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from broadreach import cli
from broadreach.models.locate import locate

SMALL = ["es.population=2", "train.batch=2", "train.updates=2", "sampling.max_new_tokens=6", "train.stop_when_idle=0"]


def sets(*items):
    return [word for item in items for word in ("--set", item)]


@pytest.fixture
def broadreach(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["broadreach", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


@pytest.fixture
def refused(broadreach):
    def call(*arguments):
        code, _, error = broadreach(*arguments)
        assert code == 2, error
        assert "Traceback" not in error
        line = error.strip()
        assert line.startswith("broadreach: ") and "\n" not in line
        return line

    return call


@pytest.fixture
def finished(broadreach, tmp_path):
    folder = tmp_path / "run"
    code, _, error = broadreach("train", "demo", "--run", folder, "--quiet", *sets(*SMALL))
    assert code == 0, error
    return folder


@pytest.fixture
def nano_copy(tmp_path):
    return shutil.copytree(locate("nano"), tmp_path / "model")


def test_unknown_key(refused, tmp_path):
    assert "did you mean es.sigma" in refused("train", "demo", "--run", tmp_path / "r", *sets("es.sgima=1"))
    assert not (tmp_path / "r").exists()


def test_batch_larger_than_the_data(refused, tmp_path):
    line = refused("train", "demo", "--run", tmp_path / "r", *sets("train.batch=64", "task.max_train=10"))
    assert "larger than the 10 training problems" in line


def test_missing_model_directory(refused, tmp_path):
    assert "no-such-dir" in refused("train", "demo", "--run", tmp_path / "r", *sets("model.path=./no-such-dir"))


def test_model_without_chat_template(refused, tmp_path, nano_copy):
    for path in nano_copy.glob("chat_template*"):
        path.unlink()
    settings = json.loads((nano_copy / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (nano_copy / "tokenizer_config.json").write_text(json.dumps(settings))
    assert "chat template" in refused("train", "demo", "--run", tmp_path / "r", *sets(f"model.path={nano_copy}"))


def test_prompt_longer_than_the_context(refused, tmp_path):
    line = refused("train", "demo", "--run", tmp_path / "r", *sets("sampling.max_new_tokens=100000"))
    assert "nano-chain/train" in line and "context" in line


def test_unknown_task(refused, tmp_path):
    line = refused("train", "demo", "--run", tmp_path / "r", *sets("task.name=nano-chian"))
    assert "nano-chain" in line


def test_broken_jsonl_line(refused, tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text('{"question": "1+1", "answer": "2"}\n{"question": "1+2", "answer"\n')
    options = f"task.options={{path={str(data)!r}, prompt_column='question', answer_column='answer', family='exact'}}"
    line = refused("train", "demo", "--run", tmp_path / "r", *sets("task.name=jsonl", options))
    assert "data.jsonl" in line and "line 2" in line


def test_run_folder_in_use(refused, finished):
    from broadreach.runs.folder import RunFolder

    lock = str(finished / "lock")
    code = f"import fcntl, time; f = open({lock!r}, 'r+'); fcntl.flock(f, 2); print('ok', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        assert "in use by process" in refused("train", "--resume", finished)
        other.kill()
    with RunFolder(finished).locked():
        pass


def test_torn_ledger_is_recovered_with_a_warning(broadreach, finished):
    ledger = finished / "ledger.jsonl"
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-40])
    (finished / "DONE").unlink()
    code, out, _ = broadreach("train", "--resume", finished)
    assert code == 0 and "last line was incomplete" in out
    assert ledger.read_bytes() == whole


def test_edited_ledger_is_refused(refused, finished):
    ledger = finished / "ledger.jsonl"
    lines = ledger.read_text().splitlines()
    lines[1] = lines[1].replace('"sigma":', '"sigma": ')
    row = json.loads(lines[1])
    row["alpha"] = 99.0
    lines[1] = json.dumps(row)
    ledger.write_text("\n".join(lines) + "\n")
    assert "line 2 was changed" in refused("replay", finished, "--step", 1, "--out", finished / "out")


def test_resume_with_changed_settings_lists_them(refused, finished):
    line = refused("train", "demo", "--run", finished, *sets(*SMALL, "es.sigma=0.5"))
    assert "es.sigma: 0.02 -> 0.5" in line


def test_changed_base_model_is_refused(broadreach, refused, tmp_path, nano_copy):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "run"
    assert broadreach("train", "demo", "--run", folder, "-q", *sets(*SMALL, f"model.path={nano_copy}"))[0] == 0
    tensors = load_file(nano_copy / "model.safetensors")
    next(iter(tensors.values())).view(-1)[0] += 1
    save_file(tensors, nano_copy / "model.safetensors", metadata={"format": "pt"})
    assert "base model changed" in refused("replay", folder, "--step", 1, "--out", tmp_path / "out")


def test_step_beyond_the_run(refused, finished):
    assert "updates 0 (the base) to 2" in refused("replay", finished, "--step", 3, "--out", finished / "out")


def test_replay_into_a_full_directory(refused, finished):
    assert "not empty" in refused("replay", finished, "--step", 1, "--out", finished)


def test_no_run_folder(refused, tmp_path):
    assert "is not a run folder" in refused("report", tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_one_line_and_the_run_goes_on_later(refused, broadreach, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", disk], check=False, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        line = refused("train", "demo", "--run", disk / "r", "-q", *sets(*SMALL))
        assert "no space left" in line
        subprocess.run(["mount", "-o", "remount,size=64M", disk], check=True)
        assert broadreach("train", "--resume", disk / "r", "-q")[0] == 0
    finally:
        subprocess.run(["umount", disk], check=False)
