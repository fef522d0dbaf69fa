"""ccache's statistics log."""

from __future__ import annotations

from pathlib import Path

from torchbench_dbg.build.ccache import read_statistics
from torchbench_dbg.build.record import CacheUse


def test_calls_are_counted_and_the_probes_of_cmake_are_not(tmp_path: Path) -> None:
    log = tmp_path / "ccache.stats"
    log.write_text(
        "# /usr/share/cmake/Modules/CMakeCXXCompilerABI.cpp\ncache_miss\ndirect_cache_miss\n"
        "# ../a.cpp\ncache_miss\ndirect_cache_miss\npreprocessed_cache_miss\n"
        "# ../b.cpp\ndirect_cache_hit\nlocal_storage_hit\n"
        "# ../c.cpp\ndirect_cache_miss\npreprocessed_cache_hit\n"
        "# a.o\ncalled_for_link\n"
    )
    assert read_statistics(log) == CacheUse(hits=2, misses=1, errors=1)


def test_no_log(tmp_path: Path) -> None:
    assert read_statistics(tmp_path / "none") is None
