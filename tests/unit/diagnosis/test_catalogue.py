"""The catalogue is whole, and the matcher ranks causes before what follows from them."""

from __future__ import annotations

import re

import pytest

from torchbench_dbg.diagnosis import catalogue
from torchbench_dbg.diagnosis.catalogue import CatalogueError, Entry, load
from torchbench_dbg.diagnosis.evidence import Evidence
from torchbench_dbg.diagnosis.matcher import Diagnosis, diagnose

ENTRIES = load("crash")


def entry(code: str, **changes: object) -> Entry:
    data = {
        "code": code,
        "title": f"title of {code}",
        "cause": "cause",
        "fix": ["fix"],
        "known_by": "known by",
        "certainty": "likely",
        "when": {"signal": ["SIGSEGV"]},
    }
    return catalogue._entry({**data, **changes})


def found(evidence: Evidence) -> list[str]:
    return [diagnosis.code for diagnosis in diagnose(ENTRIES, evidence)]


def test_codes_are_unique_and_of_the_family() -> None:
    codes = [each.code for each in ENTRIES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"C\d{3}", code) for code in codes)


@pytest.mark.parametrize("each", ENTRIES, ids=lambda each: each.code)
def test_entry_is_whole(each: Entry) -> None:
    assert len(each.cause) > 40
    assert each.fix
    known = {each.code for each in ENTRIES}
    assert set(each.explains) <= known
    assert each.code not in each.explains
    groups = {name for patterns in each.when.values() for pattern in patterns for name in pattern.groupindex}
    used = {
        name for text in (each.title, each.cause, each.known_by, *each.fix) for name in re.findall(r"\{(\w+)\}", text)
    }
    assert used <= groups
    assert all(reference.startswith("https://github.com/") for reference in each.references)


def test_no_cycle_of_explanations() -> None:
    explains = {each.code: set(each.explains) for each in ENTRIES}
    for code in explains:
        reached, todo = set(), [code]
        while todo:
            for following in explains[todo.pop()]:
                assert following != code
                if following not in reached:
                    reached.add(following)
                    todo.append(following)


def test_a_healthy_process_has_no_diagnosis() -> None:
    assert found(Evidence()) == []
    healthy = Evidence(
        signal=("exit",),
        loaded=("libgomp.so.1", "libiomp5.so", "libc.so.6"),
        text=("Epoch 1: loss 0.1, a warning, std::bad_alloc in a comment, free memory: 3 GB",),
    )
    assert found(healthy) == []


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(signal=("SIGSEGV",), fault=("null",)), ["C070"]),
        (Evidence(signal=("SIGSEGV",), fault=("unmapped",)), ["C071"]),
        (Evidence(signal=("SIGSEGV",), fault=("protected",)), ["C072"]),
        (Evidence(signal=("SIGSEGV",), fault=("stack overflow",), failing=("libx.so!f(int)",)), ["C030"]),
        (Evidence(signal=("SIGBUS",), fault=("past end of file",)), ["C080"]),
        (Evidence(signal=("SIGBUS",), fault=("past end of file",), process=("touched shared memory",)), ["C081"]),
        (Evidence(signal=("SIGILL",), instruction=("AVX-512",), machine=("lacks AVX-512 (avx512f)",)), ["C001"]),
        (Evidence(signal=("SIGILL",), instruction=("AVX-512",)), ["C002"]),
        (Evidence(signal=("SIGILL",), instruction=("ud2",)), ["C003"]),
        (Evidence(signal=("SIGILL",)), []),
        (Evidence(signal=("SIGKILL",)), ["C041"]),
        (Evidence(signal=("SIGKILL",), machine=("the memory cgroup counts 1 more",)), ["C040"]),
        (Evidence(signal=("SIGABRT",)), ["C090"]),
        (Evidence(signal=("SIGABRT",), process=("std::terminate",)), ["C061"]),
        (Evidence(signal=("SIGABRT",), process=("std::terminate",), exception=("Own: x\ny",)), ["C060"]),
        (Evidence(signal=("SIGABRT",), process=("std::terminate",), exception=("std::bad_alloc: ",)), ["C043"]),
        (Evidence(signal=("SIGABRT",), text=("corrupted size vs. prev_size",)), ["C067"]),
        (Evidence(signal=("SIGABRT",), text=("*** stack smashing detected ***: terminated",)), ["C068"]),
        (Evidence(signal=("SIGABRT",), text=("OMP: Error #15: Initializing libiomp5.so",)), ["C021"]),
        (Evidence(signal=("SIGABRT",), text=("Fatal Python error: deallocating None",)), ["C066"]),
        (Evidence(signal=("exit",), text=("RuntimeError: Cannot re-initialize CUDA in forked subprocess.",)), ["C087"]),
        (Evidence(signal=("exit",), text=("RuntimeError: CUDA error: device-side assert triggered",)), ["C088"]),
    ],
)
def test_evidence_and_cause(evidence: Evidence, expected: list[str]) -> None:
    assert found(evidence) == expected


def test_openmp_needs_two_runtimes_and_a_crash_in_one() -> None:
    crash = {"signal": ("SIGSEGV",), "fault": ("null",), "stack": ("libiomp5.so!__kmp_fork_call",)}
    assert found(Evidence(**crash, loaded=("libgomp.so.1", "libiomp5.so")))[0] == "C020"
    assert found(Evidence(**crash, loaded=("libiomp5.so",))) == ["C070"]
    elsewhere = {**crash, "stack": ("libtorch_cpu.so!at::add",)}
    assert found(Evidence(**elsewhere, loaded=("libgomp.so.1", "libiomp5.so"))) == ["C070"]


def test_strings_of_two_kinds_and_another_torch_do_not_both_fit() -> None:
    def failing(symbol: str) -> list[str]:
        return found(Evidence(signal=("exit",), text=(f"ImportError: x.so: undefined symbol: {symbol}\n",)))

    assert failing("_ZN3c105ErrorC1ENS_14SourceLocationERKSs") == ["C010"]
    assert failing("_ZN5torch3jit5Value13setUniqueNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE") == [
        "C010"
    ]
    assert failing("_ZTIN3c1010TensorImplE") == ["C011"]
    assert failing("THPVariableClass") == ["C012"]
    assert failing("PyUnicode_AsUTF8AndSize") == ["C013"]
    assert failing("_ZN3foo3barEv") == []


def test_root_before_consequence_and_possible_only_alone() -> None:
    root = entry("X001", explains=["X002"])
    consequence, possible, certain = (
        entry("X002"),
        entry("X003", certainty="possible"),
        entry("X004", certainty="certain"),
    )
    evidence = Evidence(signal=("SIGSEGV",))
    result = diagnose([consequence, possible, root, certain], evidence)
    assert [each.code for each in result] == ["X004", "X001"]
    assert result[1].consequences == ("X002",)
    assert [each.code for each in diagnose([possible], evidence)] == ["X003"]


def test_all_patterns_must_be_found_and_none_of_the_contradictions() -> None:
    both = entry("X001", when={"text": ["one", "two"]}, unless={"text": ["three"]})
    assert diagnose([both], Evidence(text=("one",))) == ()
    assert len(diagnose([both], Evidence(text=("one", "two")))) == 1
    assert diagnose([both], Evidence(text=("one two", "three"))) == ()


def test_what_a_group_found_is_quoted_short() -> None:
    long = entry("X001", title="it said {what}", when={"text": ["said (?P<what>(?s:.*))"]})
    (diagnosis,) = diagnose([long], Evidence(text=("said " + "a\n" * 500,)))
    assert isinstance(diagnosis, Diagnosis)
    assert diagnosis.title.startswith("it said a a a")
    assert len(diagnosis.title) < 200


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cause": ""}, "lacks cause"),
        ({"when": {"colour": ["x"]}}, "evidence has no colour"),
        ({"when": {"text": ["("]}}, "'('"),
        ({"certainty": "sure"}, "no certainty"),
        ({"extra": 1}, "unknown extra"),
    ],
)
def test_a_wrong_entry_is_told(changes: dict[str, object], said: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(said)):
        entry("X001", **changes)
