"""``sparselab overlap``: a file in, a table out."""

from __future__ import annotations

import json

import pytest

from sparselab import OverlapDistribution, load_overlap
from sparselab.cli import main
from sparselab.shipped_data import sample


def test_it_writes_the_table_and_says_what_it_measured(tmp_path, capsys):
    out = tmp_path / "chats.csv"
    assert main(["overlap", str(sample("chats.jsonl")), "-o", str(out)]) == 0
    assert OverlapDistribution.from_csv(out) == load_overlap("sample_chats")
    printed = capsys.readouterr().out
    assert "22 requests" in printed
    assert f"wrote {out}" in printed


def test_json_has_the_same_facts(capsys):
    assert main(["overlap", str(sample("trace_mooncake.jsonl")), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["format"] == "mooncake"
    assert facts["granularity_tokens"] == 512
    assert facts["overlap_share"] == facts["overlap_tokens"] / facts["prompt_tokens"]


def test_a_format_and_its_options_can_be_named(tmp_path, capsys):
    trace = str(sample("trace_qwen_bailian.jsonl"))
    assert main(["overlap", trace, "--format", "qwen_bailian", "--option", "block_size=16"]) == 0
    assert "qwen_bailian, by blocks of 16 tokens" in capsys.readouterr().out
    prompts = ["overlap", str(sample("system_prompts")), "--json"]
    assert main([*prompts, "--option", "queries_per_prompt=3"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 18


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl"], "no such file: nowhere.jsonl"),
        ([str(sample("queries.jsonl"))], "the format is not recognised"),
        ([str(sample("chats.jsonl")), "--format", "chats"], "unknown workload 'chats'"),
        ([str(sample("chats.jsonl")), "--option", "block=1"], "unknown option"),
        ([str(sample("chats.jsonl")), "--option", "path=1"], "--option must not set 'path'"),
        ([str(sample("chats.jsonl")), "--option", "tokenizer=[1]"], "tokenizer must be a str"),
        ([str(sample("trace_mooncake.jsonl")), "--option", "block_size=64"], "line 1: 'hash_ids'"),
        (
            [str(sample("system_prompts")), "--option", "queries_per_prompt=" + "9" * 20],
            "queries_per_prompt must be at most 10000000, got 999",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(arguments, message, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert main(["overlap", *arguments, "-o", str(out)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("folder.csv", "is a folder, not a file to write"),
        ("file/out.csv", "a part of its path is a file"),
        ("out.txt", "--out must end in .csv or .gz, got"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_measured(
    out, message, tmp_path, capsys, monkeypatch
):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("sparselab.workloads.load", None)
    assert main(["overlap", str(sample("chats.jsonl")), "-o", str(tmp_path / out)]) == 2
    assert message in capsys.readouterr().err


def test_the_measured_file_is_never_overwritten(tmp_path, capsys):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"tokens": [1]}\n')
    assert main(["overlap", str(trace), "-o", str(trace)]) == 2
    assert "must not be the file that is measured" in capsys.readouterr().err
    assert trace.read_text() == '{"tokens": [1]}\n'
