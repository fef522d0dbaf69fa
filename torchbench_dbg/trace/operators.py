"""What a trace says of operators: which were dispatched, with which keys, and which kernel each ended in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from torchbench_dbg.trace import layers
from torchbench_dbg.trace.record import Call, Function, Operator, TraceRecord

_COMPUTING = ("kernel", "loop", "blas", "device", "extension")
# Operators that only prepare memory: they are shown, but never as the main one.
_HELPERS = frozenset(
    """
    empty_memory_format empty_strided empty_like new_empty new_empty_strided zeros zeros_like ones fill__Scalar
    zero_ ones_like full full_like scalar_tensor resize_ resize_as_ set_ set__source_Storage copy_ _to_copy
    to_dtype to_dtype_layout contiguous clone detach as_strided as_strided_ expand reshape view _unsafe_view
    unsqueeze squeeze squeeze_dim alias result_type_Tensor is_nonzero is_floating_point is_complex
    _has_compatible_shallow_copy_type _nnpack_available _fused_sdp_choice
    """.split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """One kernel that ran: its call, the dispatch that led to it and the autograd node around it.

    `kernel` is the call of the function that computes; `deepest` the end of its path (its inner loop, or the
    kernel itself). -1: none.
    """

    operator_call: int
    kernel: int
    deepest: int
    node_call: int


class TraceAnalysis:
    """Reads a record; computes each answer once."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record

    @cached_property
    def children(self) -> list[list[int]]:
        """Numbers of the calls made by each call."""
        children: list[list[int]] = [[] for _ in self.record.calls]
        for number, call in enumerate(self.record.calls):
            if call.parent >= 0:
                children[call.parent].append(number)
        return children

    @cached_property
    def roots(self) -> list[int]:
        return [number for number, call in enumerate(self.record.calls) if call.parent < 0]

    def function(self, number: int) -> Function | None:
        """The C++ function of a call, None for a Python call."""
        call = self.record.calls[number]
        return self.record.functions[call.ref] if call.kind == "native" else None

    def layer(self, number: int) -> str:
        function = self.function(number)
        return function.layer if function else "python"

    def ancestors(self, number: int) -> list[int]:
        """The path from the root to a call, the call included."""
        path = []
        while number >= 0:
            path.append(number)
            number = self.record.calls[number].parent
        return path[::-1]

    @cached_property
    def _operator_above(self) -> list[int]:
        """For each call the innermost dispatch (`at::_ops::X::call`) around it, itself included; -1 if none."""
        above: list[int] = []
        for number, call in enumerate(self.record.calls):
            function = self.function(number)
            found = layers.dispatched_operator(function.name) if function else None
            if found and not found[1]:
                above.append(number)
            elif call.kind == "python":
                above.append(-1)  # Python code below a dispatch (a mode, a subclass) begins anew
            else:
                above.append(above[call.parent] if call.parent >= 0 else -1)
        return above

    @cached_property
    def _node_above(self) -> list[int]:
        above: list[int] = []
        for number, call in enumerate(self.record.calls):
            function = self.function(number)
            if function and layers.autograd_node(function.name):
                above.append(number)
            else:
                above.append(above[call.parent] if call.parent >= 0 else -1)
        return above

    def operator_symbol(self, number: int) -> str | None:
        """`add_Tensor` of a call of `at::_ops::add_Tensor::call`."""
        function = self.function(number)
        found = layers.dispatched_operator(function.name) if function else None
        return found[0] if found else None

    @cached_property
    def _operators(self) -> dict[str, Operator]:
        return {operator.symbol: operator for operator in self.record.operators}

    def operator(self, number: int) -> Operator | None:
        """What the dispatcher knows of the operator that a call dispatches."""
        return self._operators.get(self.operator_symbol(number) or "")

    def operator_name(self, number: int) -> str:
        """`aten::add.Tensor`, or the name of the symbol where the target could not say."""
        operator = self.operator(number)
        return operator.name if operator else f"at::_ops::{self.operator_symbol(number)}"

    @cached_property
    def operator_calls(self) -> list[int]:
        """Every dispatch, in order of time."""
        return [number for number, above in enumerate(self._operator_above) if above == number]

    @cached_property
    def kernels(self) -> list[KernelUse]:
        """The kernels that ran, in order of time: the computing functions of each innermost dispatch."""
        leaves: dict[tuple[int, int, int], list[int]] = {}
        for number, call in enumerate(self.record.calls):
            if self._computes(number) and not self._is_parallel_part(number):
                key = (self._operator_above[number], self._node_above[number], call.thread)
                if key[0] < 0:
                    key = (-1, key[1], self.ancestors(number)[0])
                leaves.setdefault(key, []).append(number)
        uses = [self._kernel_use(operator, node, calls) for (operator, node, _), calls in leaves.items()]
        uses += self._plain_native({operator for operator, _, _ in leaves})
        return sorted(uses, key=lambda use: use.kernel)

    def _is_parallel_part(self, number: int) -> bool:
        """Whether a call is a worker's share of a loop that another thread runs (OpenMP): no dispatch is above it."""
        thread = self.record.calls[number].thread
        return self._operator_above[number] < 0 and thread not in self._main_threads

    @cached_property
    def _main_threads(self) -> set[int]:
        return {thread.id for thread in self.record.threads if thread.main}

    def _computes(self, number: int) -> bool:
        return self.layer(number) in _COMPUTING or number in self._chosen_by_stub

    @cached_property
    def _chosen_by_stub(self) -> set[int]:
        """The calls that follow a DispatchStub's choice: kernels, whatever their names are."""
        chosen = set()
        for number, call in enumerate(self.record.calls):
            if self.layer(number) == "stub" and call.parent >= 0 and self.layer(call.parent) != "stub":
                following = next((child for child in self.children[call.parent] if child > number), -1)
                if following >= 0 and self.layer(following) in ("kernel", "native", "unnamed"):
                    chosen.add(following)
        return chosen

    def _kernel_use(self, operator: int, node: int, calls: list[int]) -> KernelUse:
        outermost: list[int] = []
        for number in calls:
            if not outermost or not self._is_inside(number, outermost[-1]):
                outermost.append(number)
        kernel = min(outermost, key=self._rank)
        inside = [number for number in calls if self._is_inside(number, kernel)]
        deepest = max(inside, key=lambda number: (len(self.ancestors(number)), number))
        if self.layer(kernel) == "loop":
            kernel = self._around(kernel, operator)
        return KernelUse(operator_call=operator, kernel=kernel, deepest=deepest, node_call=node)

    def _rank(self, number: int) -> tuple[int, int]:
        layer = self.layer(number)
        if layer in ("blas", "device", "extension"):
            return 0, number
        if number in self._chosen_by_stub:
            return 1, number
        return (2 if layer == "kernel" else 3), number

    def _around(self, number: int, limit: int) -> int:
        """The native function that runs an anonymous loop."""
        for ancestor in reversed(self.ancestors(number)[:-1]):
            if ancestor == limit:
                break
            if self.layer(ancestor) in ("native", "wrapper"):
                return ancestor
        return number

    def _is_inside(self, number: int, outer: int) -> bool:
        while number > outer:
            number = self.record.calls[number].parent
        return number == outer

    def _plain_native(self, busy: set[int]) -> Iterator[KernelUse]:
        """Dispatches that end in no named kernel: their native function computes itself (embedding, nonzero).

        Not so for views, for operators that only prepare memory, and for those that leave the work to others.
        """
        accounted = {operator for operator in busy if operator >= 0 and self._does_the_work(operator)}
        natives = self._first_native
        for operator in reversed(self.operator_calls):
            outer = self.record.calls[operator].parent
            outer = self._operator_above[outer] if outer >= 0 else -1
            if operator not in accounted and operator in natives and not self._prepares_only(operator):
                accounted.add(operator)
                native = natives[operator]
                node = self._node_above[operator]
                yield KernelUse(operator_call=operator, kernel=native, deepest=native, node_call=node)
            if operator in accounted:
                accounted.add(outer)

    def _does_the_work(self, operator: int) -> bool:
        """Whether the kernel of a dispatch is also what the dispatch around it is for. A helper's is so where it writes
        the result of an in-place operator: fill_.Tensor only calls copy_."""
        if self.operator_symbol(operator) not in _HELPERS:
            return True
        parent = self.record.calls[operator].parent
        outer = self._operator_above[parent] if parent >= 0 else -1
        return outer >= 0 and self.operator_name(outer).partition(".")[0].endswith("_")

    def _prepares_only(self, operator: int) -> bool:
        return self.operator_symbol(operator) in _HELPERS or self.is_view(operator)

    @cached_property
    def _first_native(self) -> dict[int, int]:
        """For each dispatch the first native function that it runs itself."""
        natives: dict[int, int] = {}
        for number, operator in enumerate(self._operator_above):
            if operator < 0 or self.layer(number) != "native":
                continue
            if self.layer(self.record.calls[number].parent) != "iterator":  # not a helper of shape inference
                natives.setdefault(operator, number)
        return natives

    def is_view(self, number: int) -> bool:
        """Whether the dispatched operator returns an alias of its input (its schema says `Tensor(a)`)."""
        operator = self.operator(number)
        return bool(operator and operator.schema and "(a)" in operator.schema.rpartition("->")[2])

    def is_helper(self, use: KernelUse) -> bool:
        return (self.operator_symbol(use.operator_call) if use.operator_call >= 0 else None) in _HELPERS

    @cached_property
    def main_kernel(self) -> KernelUse | None:
        """The kernel that the default view leads to: the first that computes more than helpers do."""
        if not self.kernels:
            return None
        named = (*_COMPUTING, "unnamed")
        return min(self.kernels, key=lambda use: (self.is_helper(use), self.layer(use.kernel) not in named, use.kernel))

    @cached_property
    def node_calls(self) -> list[int]:
        """The outermost call of each autograd node that ran (its `apply`), in order of time."""
        return [
            number
            for number, above in enumerate(self._node_above)
            if above == number and self._node_above[self.record.calls[number].parent] < 0
        ]

    def node_name(self, number: int) -> str:
        """`MulBackward0` of a call of its `apply`."""
        function = self.function(number)
        return (layers.autograd_node(function.name) if function else None) or ""

    def forward_call(self, node_call: int) -> int:
        """The dispatch, seen in this trace, that made a node: the only one of its operator before it, else -1."""
        made_by = self.record.forward_operators.get(self.node_name(node_call))
        candidates = [
            number
            for number in self.operator_calls
            if number < node_call and self.operator_name(number) == made_by and self._node_above[number] < 0
        ]
        return candidates[0] if len(candidates) == 1 else -1

    def python_place(self, number: int) -> tuple[int, int]:
        """(number of the innermost Python call around a call or -1, its line)."""
        while number >= 0:
            parent = self.record.calls[number].parent
            if parent >= 0 and self.record.calls[parent].kind == "python":
                return parent, self.record.calls[number].line
            number = parent
        return -1, 0

    def keys_of(self, number: int) -> int | None:
        """The raw key set of a hop: its own argument, or that of the look-up that it makes."""
        call: Call = self.record.calls[number]
        if call.keys is not None:
            return call.keys
        for child in self.children[number]:
            function = self.function(child)
            if function and "OperatorEntry::lookup" in function.name:
                return self.record.calls[child].keys
        return None
