"""`stormproof check`: files in, verdicts and exit code out."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.check import CheckResult, check_files, limits_from, print_result
from harness.errors import InputError
from harness.loading import Document
from tests.invariants.shorthand import Fields, call, done, effect, ended, of, queued, record, started
from traces.history import Limits
from traces.registry_reading import registry_from

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT.parent / "shared" / "cases" / "histories"
EXPECTED = CASES / "expected.json"

DOUBLE = [started(), effect("e", idempotency_key="k"), effect("f", idempotency_key="k"), ended()]


def write(path: Path, *records: Fields) -> str:
    """A history file; times and run are filled in."""
    lines = [json.dumps({"t": n / 10, "run_id": "r", **fields}) for n, fields in enumerate(records, start=1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def refused(*paths: str, **options: Any) -> list[str]:
    """The faults that check refuses these files for."""
    with pytest.raises(InputError) as caught:
        check_files(paths, **options)
    return list(caught.value.faults)


def shown(result: CheckResult, *, quiet: bool = False) -> str:
    """What the console shows."""
    stream = io.StringIO()
    print_result(result, stream, quiet=quiet)
    return stream.getvalue()


def expected_cases() -> list[Any]:
    """Every recorded case with what has to come out, or one that says where they are missing."""
    if not EXPECTED.exists():
        reason = "the recorded cases (../shared/cases/histories) are not here"
        return [pytest.param({}, id="none", marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(one, id=one["file"]) for one in json.loads(EXPECTED.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("expected", expected_cases())
def test_recorded_cases_get_exactly_what_is_written_there(expected: dict[str, Any]) -> None:
    """Violations, reasons and breaking lines are those listed and no others; bad input names file and line."""
    path = str(CASES / expected["file"])
    if "bad_input_line" in expected:
        assert refused(path)[0].startswith(f"{path}:{expected['bad_input_line']}: ")
        return
    result = check_files([path])
    found = [
        {"run_id": v.run_id, "invariant": v.invariant, "reason": v.reason, "broken_at": v.evidence[-1]}
        for v in result.violations
    ]
    assert found == expected["violations"]
    words = {(v.run_id, v.invariant): v.verdict for v in result.verdicts}
    for one in expected["verdicts"]:
        assert words[one["run_id"], one["invariant"]] == one["verdict"]
    assert result.exit_code == (1 if expected["violations"] else 0)


def test_the_json_is_that_of_the_contract(tmp_path: Path) -> None:
    """Files, records, runs, verdicts with line numbers as evidence, and counts."""
    result = check_files([write(tmp_path / "h.jsonl", *DOUBLE)])
    document = json.loads(msgspec.json.encode(result.as_json()))
    assert list(document) == ["files", "records", "runs", "verdicts", "counts"]
    assert (document["files"], document["records"], document["runs"]) == (1, 4, 1)
    violated = document["verdicts"][0]
    assert list(violated) == ["run_id", "invariant", "verdict", "reason", "evidence", "message"]
    assert violated["evidence"] == [2, 3]
    assert document["verdicts"][1] == {
        "run_id": "r",
        "invariant": "budgets",
        "verdict": "vacuous",
        "reason": None,
        "evidence": [],
        "message": "the run had no limit of steps, time, tokens or cost and carried no deadline",
    }
    assert document["counts"]["single-effect"] == {"held": 0, "violated": 1, "vacuous": 0, "unobservable": 0}


def test_several_files_are_one_history(tmp_path: Path) -> None:
    """A key met in one file counts in the next, and evidence reads FILE:LINE."""
    one = write(tmp_path / "one.jsonl", *DOUBLE[:2])
    two = write(tmp_path / "two.jsonl", {**DOUBLE[2], "t": 1}, {**DOUBLE[3], "t": 1})
    result = check_files([one, two])
    document = json.loads(msgspec.json.encode(result.as_json()))
    assert document["files"] == 2
    assert document["verdicts"][0]["evidence"] == [f"{one}:2", f"{two}:1"]


def test_exit_codes(tmp_path: Path) -> None:
    """0 all held, 1 violated, 4 no run at all; a file of world_finished alone has no run."""
    assert check_files([write(tmp_path / "good", started(), ended())]).exit_code == 0
    assert check_files([write(tmp_path / "bad", *DOUBLE)]).exit_code == 1
    assert check_files([write(tmp_path / "empty")]).exit_code == 4
    assert check_files([write(tmp_path / "world", record("world_finished"))]).exit_code == 4


def test_a_failure_of_ours_hides_no_violation_and_is_no_pass(tmp_path: Path) -> None:
    """A checker that raised gives exit 3, unless a violation is proven."""
    result = check_files([write(tmp_path / "good", started(), ended())])
    failed = {name: getattr(result, name) for name in ("files", "records", "runs", "verdicts", "places", "warnings")}
    counts = result.counts
    assert CheckResult(**failed, counts=counts, errors=("it failed",)).exit_code == 3
    counts["budgets"]["violated"] = 1
    assert CheckResult(**failed, counts=counts, errors=("it failed",)).exit_code == 1


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """Malformed lines, misplaced records and unreadable files, each as FILE:LINE and a sentence."""
    one = tmp_path / "one.jsonl"
    one.write_text('[]\n{"type": "x", "t": 5, "run_id": "r", "step": "1"}\n', encoding="utf-8")
    two = write(tmp_path / "two.jsonl", record("x", t=5), started(), record("x", t=1))
    missing = str(tmp_path / "missing.jsonl")
    faults = refused(str(one), missing, two)
    assert [fault.split(": ")[0] for fault in faults] == [
        f"{missing}:1",
        f"{one}:1",
        f"{one}:2",
        f"{two}:2",
        f"{two}:2",
        f"{two}:3",
    ]


def test_very_many_faults_are_counted(tmp_path: Path) -> None:
    """Beyond a hundred faults the rest is a number."""
    path = tmp_path / "h.jsonl"
    path.write_text("[]\n" * 150, encoding="utf-8")
    faults = refused(str(path))
    assert len(faults) == 101
    assert faults[-1] == "and 50 more faults"


def test_a_malformed_start_is_one_fault(tmp_path: Path) -> None:
    """Records after a run_started that could not be read are not held against its absence."""
    path = write(tmp_path / "h.jsonl", {**started(), "tenant": 5}, record("x"), started())
    assert [fault.split(": ")[0] for fault in refused(path)] == [f"{path}:1"]


def test_a_killed_writer_leaves_a_warning(tmp_path: Path) -> None:
    """The unterminated last line is set aside, with file and line, and the rest is judged."""
    path = Path(write(tmp_path / "h.jsonl", started(), ended()))
    path.write_bytes(path.read_bytes() + b'{"type": "run_fin')
    result = check_files([str(path)])
    assert (result.exit_code, result.records) == (0, 2)
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith(f"{path}:3: ")


def test_sort_puts_records_in_order_of_time_first(tmp_path: Path) -> None:
    """Unordered input is bad without it; with it, evidence names the lines as they stand, the breaking one last."""
    path = write(
        tmp_path / "h.jsonl",
        {**ended(), "t": 9},
        {**DOUBLE[1], "t": 3, "effect_id": "late"},
        {**DOUBLE[1], "t": 2},
        {**started(), "t": 1},
    )
    assert refused(path)[0].startswith(f"{path}:2: ")
    result = check_files([path], sort=True)
    assert [(verdict.reason, verdict.evidence) for verdict in result.violations] == [("duplicate-key", (3, 2))]
    assert f"proof: {path}:3, {path}:2" in shown(result)


def test_sorting_is_stable_and_goes_over_files(tmp_path: Path) -> None:
    """Records of one time keep their order; files are sorted into each other."""
    one = write(tmp_path / "one.jsonl", {**started(), "t": 1}, {**DOUBLE[1], "t": 5})
    two = write(tmp_path / "two.jsonl", {**DOUBLE[2], "t": 5}, {**DOUBLE[1], "t": 3, "effect_id": "g"})
    result = check_files([one, two], sort=True)
    assert [result.as_json()["verdicts"][0]["evidence"]] == [[f"{two}:2", f"{one}:2"]]


def test_sorted_input_with_a_late_start_is_bad_input(tmp_path: Path) -> None:
    """Sorting mends the order, not the rule that run_started comes first."""
    path = write(tmp_path / "h.jsonl", {**started(), "t": 2}, {**ended(), "t": 1})
    assert refused(path, sort=True)[0].startswith(f"{path}:1: ")


def test_limits_hold_where_a_run_states_none(tmp_path: Path) -> None:
    """The limits given stand in for missing ones, field by field."""
    path = write(tmp_path / "h.jsonl", *of("a", started(steps=5), record("x", step=1)), *of("b", record("x", step=1)))
    result = check_files([path], limits=Limits(steps=0))
    assert [(v.run_id, v.reason) for v in result.violations] == [("b", "steps")]


def test_tools_say_what_the_history_leaves_open(tmp_path: Path) -> None:
    """A call is effectful and of a group as the registry says, where its own record does not say it."""
    tools = registry_from(
        {
            "charge": {
                "match": {"method": "POST", "path": "/charge"},
                "idempotency": "keyed",
                "severity": "money",
                "resource_group": "db",
                "avoid": True,
            }
        }
    )
    silent = {"effectful": None}
    path = write(
        tmp_path / "h.jsonl",
        *of("a", call("x", **silent), done("x")),
        *of("b", started(group_concurrency={"db": 0}), queued("y"), call("y", **silent)),
        *of("c", call("z", effectful=False, resource_group="mail"), done("z")),
        *of("d", call("q", tool="unheard", effectful=None)),
    )
    words = {(v.run_id, v.invariant): v.verdict for v in check_files([path], tools=tools).verdicts}
    assert words["a", "single-effect"] == "held"
    assert words["b", "bounded-concurrency"] == "violated"
    assert words["c", "single-effect"] == "vacuous"
    assert words["d", "single-effect"] == "vacuous"
    words = {(v.run_id, v.invariant): v.verdict for v in check_files([path]).verdicts}
    assert words["a", "single-effect"] == "vacuous"
    assert words["b", "bounded-concurrency"] == "vacuous"


@pytest.mark.parametrize("text", ["steps: 3\ngrace_s: 1.5\n", "limits:\n  steps: 3\n  grace_s: 1.5\n"])
def test_limits_are_read_from_yaml(tmp_path: Path, text: str) -> None:
    """The fields of a run's limits, at the top or under `limits`."""
    path = tmp_path / "limits.yaml"
    assert limits_from(Document(path, text)) == Limits(steps=3, grace_s=1.5)
    assert limits_from(Document(path, "")) == Limits()


def test_wrong_limits_are_refused_with_their_lines(tmp_path: Path) -> None:
    """Unknown names and wrong types are told at once."""
    with pytest.raises(InputError) as caught:
        limits_from(Document(tmp_path / "limits.yaml", "steps: many\nstep: 3\ntokens: [1]\n"))
    assert [fault.split("limits.yaml:")[1].split(":")[0] for fault in caught.value.faults] == ["1", "2", "3"]
    with pytest.raises(InputError):
        limits_from(Document(tmp_path / "limits.yaml", "- steps\n"))


def test_the_console_shows_violations_apart_from_counts(tmp_path: Path) -> None:
    """What was violated with its proof, then a table; quiet shows the violations alone."""
    path = write(tmp_path / "h.jsonl", *DOUBLE)
    text = shown(check_files([path]))
    assert "VIOLATED single-effect: duplicate-key (run r)" in text
    assert f"proof: {path}:2, {path}:3" in text
    assert "1 file, 4 records, 1 run judged: 1 violation" in text
    assert "held" in text
    assert "held" not in shown(check_files([path]), quiet=True)


def test_the_console_says_when_nothing_was_judged(tmp_path: Path) -> None:
    """No run is no pass."""
    assert "no run was judged: undecided" in shown(check_files([write(tmp_path / "h.jsonl")]))


def test_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    """Escape sequences and control characters of a history are not passed on; columns stay as they are."""
    double = [{**record, "run_id": "r\x1b[2J\x07\0"} for record in DOUBLE]
    text = shown(check_files([write(tmp_path / "h.jsonl", *double)]))
    assert "(run r\ufffd\ufffd)" in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert "    proof: " in text


def test_a_terminal_gets_the_same_words(tmp_path: Path) -> None:
    """Colours add nothing to what is said."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    result = check_files([write(tmp_path / "h.jsonl", *DOUBLE)])
    stream = Terminal()
    print_result(result, stream)
    for said in shown(result).split():
        assert said in stream.getvalue()


def run_command(*arguments: str, data: bytes = b"") -> tuple[int, str, str]:
    """`stormproof check ...` as a process of its own: exit code, standard output, standard error."""
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "stormproof", "check", *arguments],
        cwd=ROOT,
        input=data,
        capture_output=True,
        timeout=60,
    )
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


def test_the_command_reads_standard_input(tmp_path: Path) -> None:
    """`-` is standard input, and --json leaves nothing else on standard output."""
    history = Path(write(tmp_path / "h.jsonl", *DOUBLE)).read_bytes()
    code, out, err = run_command("-", "--json", data=history)
    assert (code, err) == (1, "")
    assert json.loads(out)["runs"] == 1


def test_the_command_refuses_bad_input_in_words(tmp_path: Path) -> None:
    """Exit 2, FILE:LINE on standard error, no traceback."""
    path = tmp_path / "h.jsonl"
    path.write_text("{\n", encoding="utf-8")
    code, out, err = run_command(str(path))
    assert (code, out) == (2, "")
    assert err.startswith(f"{path}:1: ")
    assert "Traceback" not in err


def test_the_command_takes_tools_and_limits(tmp_path: Path) -> None:
    """Both files are read, and their faults are those of the command."""
    path = write(tmp_path / "h.jsonl", call("a", effectful=None, step=1), done("a"), ended("failed"))
    tools, limits = tmp_path / "tools.yaml", tmp_path / "limits.yaml"
    tools.write_text("charge: {match: {method: POST, path: /c}, idempotency: keyed, severity: money, avoid: true}\n")
    limits.write_text("steps: 0\n")
    code, out, err = run_command(path, "--tools", str(tools), "--limits", str(limits), "--json")
    assert (code, err) == (1, "")
    reasons = [verdict["reason"] for verdict in json.loads(out)["verdicts"] if verdict["reason"]]
    assert reasons == ["steps", "unsettled"]
    limits.write_text("stepz: 0\n")
    assert run_command(path, "--limits", str(limits))[0] == 2


def test_checking_a_small_file_loads_nothing_big() -> None:
    """Neither mitmproxy nor pandas, rich or YAML are imported for a small history."""
    program = (
        "import sys; sys.path.insert(0, '.'); from harness.cli import main; main(['check', '-']); "
        "print([n for n in ('mitmproxy', 'pandas', 'rich', 'yaml', 'aiohttp', 'jinja2') if n in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, input=b"", capture_output=True, timeout=60)
    assert ran.stdout.decode().splitlines()[-1] == "[]"
