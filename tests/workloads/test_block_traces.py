"""The two block-hash formats: Mooncake (chained ids, ms) and Qwen-Bailian (plain ids, s)."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from sparselab.workloads import load

MOONCAKE = {"timestamp": 2500, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
BAILIAN = {
    "chat_id": 7,
    "parent_chat_id": -1,
    "timestamp": 1.5,
    "input_length": 40,
    "output_length": 9,
    "type": "text",
    "turn": 1,
    "hash_ids": [3, 4, 5],
}


class TestMooncake:
    def test_reads_blocks_lengths_and_arrivals_in_seconds(self, write_lines):
        workload = load("mooncake", write_lines(MOONCAKE))
        (request,) = workload.requests
        assert workload.unit == 512
        assert request.tokens.tolist() == [0, 1, 2]
        assert request.length == 1100
        assert request.arrival == 2.5

    def test_requests_are_in_order_of_arrival(self, write_lines):
        late, early = MOONCAKE | {"timestamp": 9000}, MOONCAKE | {"timestamp": 1000}
        arrivals = [r.arrival for r in load("mooncake", write_lines(late, early))]
        assert arrivals == [1.0, 9.0]

    def test_depth_is_whole_blocks_and_never_past_a_prompt(self, write_lines):
        first = MOONCAKE
        same = MOONCAKE
        leaves = MOONCAKE | {"hash_ids": [0, 1, 9]}
        overlaps = load("mooncake", write_lines(first, same, leaves)).overlap_samples()
        assert overlaps.tolist() == [0, 1100, 1024]

    def test_requests_with_the_same_opening_blocks_form_a_group(self, write_lines):
        stranger = MOONCAKE | {"hash_ids": [0, 8, 9]}
        file = write_lines(MOONCAKE, stranger, MOONCAKE | {"hash_ids": [0, 1, 7]})
        groups = [r.group for r in load("mooncake", file)]
        assert groups[0] == groups[2] != groups[1]
        assert len({r.group for r in load("mooncake", file, group_blocks=1)}) == 1

    def test_a_last_block_without_an_id_matches_nothing(self, write_lines):
        # Engines that hash only full blocks leave the last 76 of these 1,100 tokens unnamed.
        full = MOONCAKE | {"hash_ids": [0, 1]}
        overlaps = load("mooncake", write_lines(full, full)).overlap_samples()
        assert overlaps.tolist() == [0, 1024]

    @pytest.mark.parametrize("ids", [[-1], [-2], [2**64 - 1]])
    def test_it_does_not_match_hashes_of_any_sign_either(self, write_lines, ids):
        full = MOONCAKE | {"input_length": 600, "hash_ids": [0]}
        signed = MOONCAKE | {"input_length": 1024, "hash_ids": [0, *ids]}
        overlaps = load("mooncake", write_lines(full, full, signed)).overlap_samples()
        assert overlaps.tolist() == [0, 512, 512]

    def test_reads_gzip(self, tmp_path, write_lines):
        packed = tmp_path / "trace.jsonl.gz"
        packed.write_bytes(gzip.compress(write_lines(MOONCAKE, MOONCAKE).read_bytes()))
        assert len(load("mooncake", packed)) == 2

    def test_a_truncated_gzip_is_named(self, tmp_path, write_lines):
        packed = tmp_path / "trace.jsonl.gz"
        whole = gzip.compress(write_lines(*[MOONCAKE] * 50).read_bytes())
        packed.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"trace\.jsonl\.gz is a truncated gzip file"):
            load("mooncake", packed)

    def test_the_sample_is_read_without_a_path(self):
        workload = load("mooncake")
        assert workload.unit == 512
        assert workload.overlap_samples().max() > 0
        assert workload.source == "sample written for sparselab"

    @pytest.mark.reference_data
    def test_the_published_conversation_trace(self):
        folder = os.environ.get("SPARSELAB_REFERENCE_DATA")
        if not folder:
            pytest.skip("SPARSELAB_REFERENCE_DATA does not name the folder of published files")
        workload = load("mooncake", Path(folder) / "mooncake_conversation_trace.jsonl")
        overlaps = workload.overlap_samples()
        assert len(workload) == 12_031
        assert (overlaps == 512).sum() == 7_372
        assert overlaps.sum() / workload.lengths().sum() == pytest.approx(0.374, abs=0.0005)


class TestQwenBailian:
    def test_reads_blocks_of_16_and_seconds(self, write_lines):
        workload = load("qwen_bailian", write_lines(BAILIAN))
        (request,) = workload.requests
        assert workload.unit == 16
        assert (request.length, request.arrival) == (40, 1.5)

    def test_turns_of_a_chat_form_a_group(self, write_lines):
        chats = [
            BAILIAN,
            BAILIAN | {"chat_id": 8},
            BAILIAN | {"chat_id": 9, "parent_chat_id": 7},
            BAILIAN | {"chat_id": 10, "parent_chat_id": 9},
            # Their first turn came before the file begins.
            BAILIAN | {"chat_id": 11, "parent_chat_id": 2},
            BAILIAN | {"chat_id": 12, "parent_chat_id": 2},
        ]
        assert [r.group for r in load("qwen_bailian", write_lines(*chats))] == [7, 8, 7, 7, 2, 2]

    def test_they_do_in_whatever_order_the_file_has_them(self, write_lines):
        chats = [
            BAILIAN | {"chat_id": 10, "parent_chat_id": 9},
            BAILIAN | {"chat_id": 9, "parent_chat_id": 8},
            BAILIAN | {"chat_id": 11, "parent_chat_id": 10},
            BAILIAN | {"chat_id": 8, "parent_chat_id": 7},
            BAILIAN,
        ]
        assert {r.group for r in load("qwen_bailian", write_lines(*chats))} == {7}

    def test_a_chat_that_comes_before_itself_is_refused(self, write_lines):
        round_trip = [
            BAILIAN | {"chat_id": 5, "parent_chat_id": 6},
            BAILIAN | {"chat_id": 6, "parent_chat_id": 5},
        ]
        with pytest.raises(ValueError, match=r"file\.jsonl: chat 5 comes before itself"):
            load("qwen_bailian", write_lines(*round_trip))

    def test_a_chat_with_two_parents_is_refused(self, write_lines):
        other = BAILIAN | {"parent_chat_id": 3}
        with pytest.raises(ValueError, match="line 2: chat 7 has the parent 3, but -1 further up"):
            load("qwen_bailian", write_lines(BAILIAN, other))

    def test_a_chat_of_ten_thousand_turns_takes_no_time(self, write_lines):
        chats = [BAILIAN | {"chat_id": n, "parent_chat_id": n - 1} for n in range(10_000, 0, -1)]
        assert {r.group for r in load("qwen_bailian", write_lines(*chats))} == {0}

    def test_an_equal_block_after_a_different_one_is_no_overlap(self, write_lines):
        # Ids name one block alone here, so only leading blocks count.
        other = BAILIAN | {"chat_id": 8, "hash_ids": [9, 4, 5]}
        assert load("qwen_bailian", write_lines(BAILIAN, other)).overlap_samples().sum() == 0

    def test_the_sample_is_read_without_a_path(self):
        workload = load("qwen_bailian")
        groups = [r.group for r in workload]
        assert len(set(groups)) < len(groups)
        assert workload.overlap_samples().max() > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hash_ids": [0]}, "has 1 blocks, but 1100 tokens take 3 at 512 tokens a block"),
        ({"hash_ids": [0, 1, 2, 3]}, "has 4 blocks"),
        ({"hash_ids": [0, 1, 2.5]}, r"'hash_ids' must be a list of integers .*, got 2\.5\.$"),
        ({"hash_ids": "0 1 2"}, "'hash_ids' must be a list, got '0 1 2'"),
        ({"input_length": 0, "hash_ids": []}, "'input_length' must be at least 1, got 0"),
        ({"input_length": "many"}, "'input_length' must be an integer, got 'many'"),
        ({"timestamp": -4}, "'timestamp' must be finite and not negative, got -4"),
        ({"timestamp": True}, "'timestamp' must be a number, got True"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write_lines, change, message):
    with pytest.raises(ValueError, match=rf"file\.jsonl, line 2: .*{message}"):
        load("mooncake", write_lines(MOONCAKE, MOONCAKE | change))


@pytest.mark.parametrize("key", ["timestamp", "input_length", "hash_ids"])
def test_a_missing_key_is_named_with_its_line(write_lines, key):
    without = {k: v for k, v in MOONCAKE.items() if k != key}
    with pytest.raises(ValueError, match=rf"line 2: the key '{key}' is missing"):
        load("mooncake", write_lines(MOONCAKE, without))


def test_a_line_that_is_no_json_is_named(write_lines):
    with pytest.raises(ValueError, match="line 2: not valid JSON"):
        load("mooncake", write_lines(MOONCAKE, '{"timestamp": '))


def test_an_empty_file_is_refused(write_lines):
    with pytest.raises(ValueError, match="is empty"):
        load("mooncake", write_lines())


def test_a_block_size_must_be_positive():
    with pytest.raises(ValueError, match="block_size must be at least 1, got 0"):
        load("qwen_bailian", block_size=0)
