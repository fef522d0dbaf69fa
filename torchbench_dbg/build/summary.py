"""What cmake says at the end of configuring: which features are on (cmake/Summary.cmake of the sources)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchbench_dbg.build.variables import Variable

_FEATURE = re.compile(r"^--\s+(USE_\w+)\s*:\s*(\S+)")
_ON, _OFF = {"1", "ON", "YES", "TRUE", "Y"}, {"0", "OFF", "NO", "FALSE", "N"}
_REASONS = re.compile(r"^(--)?\s+(Not compiling with|Could NOT find|Disabling|Turning off|.* not found)")


@dataclass(slots=True)
class Summary:
    """Listens to cmake's output."""

    features: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def listen(self, line: str) -> None:
        """Take one line of output."""
        if found := _FEATURE.match(line):
            self.features[found[1]] = found[2].upper()
        elif _REASONS.match(line):
            self.reasons.append(line.strip().removeprefix("--").strip())

    def turned_off(self, variables: Sequence[Variable]) -> dict[str, str]:
        """Features that a variable has switched on and the summary calls off -> cmake's own words, if it gave any."""
        wanted = [each.name for each in variables if each.name.startswith("USE_") and each.value.upper() in _ON]
        return {name: self._reason(name) for name in wanted if self.features.get(name) in _OFF}

    def _reason(self, name: str) -> str:
        word = name.removeprefix("USE_").replace("_", "").lower()
        said = [reason for reason in self.reasons if word in re.sub(r"[\W_]", "", reason.lower())]
        return said[0] if said else "it gave no reason"
