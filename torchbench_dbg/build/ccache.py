"""What ccache did in one build, from its statistics log (ccache 4.5 and later write it: CCACHE_STATSLOG)."""

from __future__ import annotations

import re
from pathlib import Path

from torchbench_dbg.build.record import CacheUse

_HITS = frozenset({"direct_cache_hit", "preprocessed_cache_hit"})
# What cmake compiles to learn of the compiler, in a directory that is new each time: no file of the project.
_PROBE = re.compile(r"/Modules/CMake|/CMakeFiles/CMake(Scratch|Tmp)/|CMakeC\w*CompilerId")


def read_statistics(path: Path) -> CacheUse | None:
    """Counts of a log: for each call a comment line with the source, then its results. None if there is no log."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    hits = misses = errors = 0
    results: set[str] = set()
    source = ""
    for line in [*lines, "# "]:
        if not line.startswith("# "):
            results.add(line)
            continue
        if source and not _PROBE.search(source):
            hits += bool(results & _HITS)
            misses += "cache_miss" in results
            errors += not results & {*_HITS, "cache_miss"}
        source, results = line[2:], set()
    return CacheUse(hits=hits, misses=misses, errors=errors)
