"""Makes the C and C++ headers of VTA and a page: `python .../vta/runtime/generate.py`.

Of the table `tilefarm.vta_isa`: `src/isa.h`, with which the C++ library encodes, decodes and
prints, and INSTRUCTIONS.md, the page. Of `tilefarm.vta_runtime`: `include/vta_runtime.h`, which
declares the runtime's functions. With `--check` it only says whether they are fresh.
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tilefarm.target import VtaConfig
from tilefarm.vta_isa import (
    ELEMENTS,
    FIRST_STAGE,
    FORMATS,
    HEAD,
    INPUTS,
    MODULES,
    TRANSFER,
    UOP,
    UOP_BITS,
    WORD_BITS,
    AluOp,
    Field,
    Format,
    Memory,
    Opcode,
    Operand,
    UopMode,
    index_bits,
    layout,
)
from tilefarm.vta_runtime import HANDLING, OF_HOSTS, QUEUING, RARE, SYNCHRONIZING, Function

HERE: Final = Path(__file__).resolve().parent
Sum: TypeAlias = Mapping[tuple[Memory, ...], int]
"""How often each term counts: the bits of the largest of some indices; () is the number one."""


def files() -> Mapping[Path, str]:
    """What is made, by path."""
    return {
        HERE / "src" / "isa.h": header(),
        HERE / "include" / "vta_runtime.h": declarations(),
        HERE / "INSTRUCTIONS.md": page(),
    }


def stale() -> list[Path]:
    """Files that the table would make otherwise, or that are absent."""
    return [
        path for path, text in files().items() if not path.is_file() or path.read_text() != text
    ]


def header() -> str:
    """The C++ header: numbers, names, fields and their places."""
    parts = [
        _HEAD,
        *_enumerations(),
        _elements(),
        _POINTED,
        _fields_record(),
        _uop_record(),
        _visitor(),
    ]
    parts += [_uop_visitor(), _operand_visitor(), _FOOT]
    return "\n".join(parts)


def declarations() -> str:
    """The C header of the runtime's functions."""
    groups = [
        _function_list(name, caption, functions.values())
        for name, caption, functions in (
            ("HOSTS", "What a host calls.", OF_HOSTS),
            ("HANDLING", "What kernels get at the queue and at their buffers with.", HANDLING),
            ("QUEUING", "What kernels have an accelerator do.", QUEUING),
            ("SYNCHRONIZING", "What runs what is queued.", SYNCHRONIZING),
            ("RARE", "What a board's library may lack.", RARE),
        )
    ]
    return "\n".join([_DECLARING, *groups, _DECLARED])


def _function_list(name: str, caption: str, functions: Iterable[Function]) -> str:
    rows = [f"/* {caption} */", f"#define VTA_{name}(X)"]
    for each in functions:
        parameters, names = ", ".join(each.parameters) or "void", ", ".join(each.names)
        row = f"X({each.result}, {each.name}, ({parameters}), ({names}))"
        rows += textwrap.wrap(row, 96, initial_indent="  ", subsequent_indent="    ")
    return "\n".join([rows[0], " \\\n".join(rows[1:]), ""])


def page() -> str:
    """The page for people."""
    lines = _PAGE.splitlines()
    for kind, name in ((Opcode, "opcode"), (Memory, "memory"), (AluOp, "ALU operation")):
        lines += ["", f"| {name} | number | |", "|---|---:|---|"]
        lines += [f"| {each.name} | {each.value} | {each.meaning} |" for each in kind]
    lines += ["", "| memory | bytes of an element in DRAM |", "|---|---|"]
    lines += [f"| {memory.name} | {_element(memory)} |" for memory in Memory]
    lines += ["", "## Every instruction", "", *_table(HEAD, 0)]
    for form in FORMATS:
        if form.high:
            names = " and ".join(opcode.name for opcode in form.opcodes)
            heading, rows = _table(form.low, 0)[:2], _table(form.low, 0)[2 + len(HEAD) :]
            lines += ["", f"## {names}", "", *heading, *rows, *_table(form.high, WORD_BITS)[2:]]
    return "\n".join([*lines, "", "## Micro-ops", "", *_table(UOP, 0), ""])


_HEAD: Final = """\
// VTA's instruction set: numbers, names, fields and where their bits lie.
//
// Made of proto/tilefarm/vta_isa.py by device_server/vta/runtime/generate.py; change that table.
#ifndef TILEFARM_ISA_H_
#define TILEFARM_ISA_H_

#include <cstdint>
#include <initializer_list>

namespace tilefarm {
"""

_FOOT: Final = """\
}  // namespace tilefarm

#endif  // TILEFARM_ISA_H_
"""

_POINTED: Final = """\
// Bits of an index into each memory: log2 of its depth.
struct IndexBits {
  int uop = 0, wgt = 0, inp = 0, acc = 0;
};

constexpr int widest(int a, int b) { return a > b ? a : b; }

// How an operand is written: its values with a separator in between.
struct Operand {
  const char* key;
  const char* separator;
  bool hexadecimal;
  bool always;  // also where all values are 0
};
"""

_DECLARING: Final = """\
/* VTA's runtime: the functions that a board's library exports and kernels call, as TVM has them.
 * A list calls X(result, name, (parameters), (their names)) for each of its functions.
 *
 * Made of proto/tilefarm/vta_runtime.py by device_server/vta/runtime/generate.py, not by hand.
 */
#ifndef TILEFARM_VTA_RUNTIME_H_
#define TILEFARM_VTA_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>
"""

_DECLARED: Final = """\
#define VTA_DECLARED(result, name, parameters, names) \\
  __attribute__((visibility("default"))) result name parameters;

#ifdef __cplusplus
extern "C" {
#endif
VTA_HOSTS(VTA_DECLARED)
VTA_HANDLING(VTA_DECLARED)
VTA_QUEUING(VTA_DECLARED)
VTA_SYNCHRONIZING(VTA_DECLARED)
VTA_RARE(VTA_DECLARED)
#ifdef __cplusplus
}
#endif

#endif /* TILEFARM_VTA_RUNTIME_H_ */
"""

_PAGE: Final = """\
# VTA's instruction set

Made of the table [tilefarm/vta_isa.py](../../../proto/tilefarm/vta_isa.py) by `generate.py`, as
[src/isa.h](src/isa.h) is: change the table.

An instruction has two words of 64 bits, a micro-op one of 32; bits count from the lowest of the
first word. Some widths follow from the depths of the memories: `uop`, `wgt`, `inp` and `acc` stand
for the bits of an index into each. The last column has the bits in the default geometry."""

_COLUMNS: Final = ("| field | bits | counts | what | default |", "|---|---|---|---|---|")


def _constant(name: str) -> str:
    return f"k{name.capitalize()}"


def _enumerations() -> Iterator[str]:
    for kind in (Opcode, Memory, AluOp, UopMode):
        rows = [(f"{_constant(each.name)} = {each.value},", each.meaning) for each in kind]
        yield "\n".join([f"enum class {kind.__name__} : uint32_t {{", *_commented(rows), "};", ""])
    numbered = ", ".join(f"{_constant(name)} = {number}" for number, name in enumerate(MODULES))
    inputs = " || ".join(f"memory == Memory::{_constant(each.name)}" for each in INPUTS)
    yield f"""\
enum class Module : uint32_t {{ {numbered} }};
constexpr int kModules = {len(MODULES)};

// VTADepPush and VTADepPop number them from here on.
constexpr int kFirstStage = {FIRST_STAGE};
constexpr int stage_of(Module module) {{ return kFirstStage + static_cast<int>(module); }}

constexpr uint32_t kOpcodes = {len(Opcode)};
constexpr int kOpcodeBits = {HEAD[0].width.bits};  // from bit 0 on
constexpr int kSramBaseBits = {TRANSFER.field("sram_base").width.bits};
constexpr int kWordBits = {WORD_BITS};
constexpr int kUopBits = {UOP_BITS};

// Names by number.
{_names("kMemoryNames", [each.word for each in Memory])}
{_names("kAluOpNames", [each.word for each in AluOp])}
{_names("kModuleNames", MODULES)}

// Where an instruction is executed; the memory counts for a LOAD alone.
constexpr Module module_of(Opcode opcode, Memory memory) {{
  if (opcode == Opcode::kStore) return Module::kStore;
  const bool input = {inputs};
  return opcode == Opcode::kLoad && input ? Module::kLoad : Module::kCompute;
}}
"""


def _elements() -> str:
    lines = [
        "// Bytes of one element in DRAM; 0 of what is no memory.",
        "constexpr uint32_t element_nbytes(Memory memory, uint32_t batch, uint32_t block) {",
        "  switch (memory) {",
    ]
    for memory in Memory:
        lines.append(f"    case Memory::{_constant(memory.name)}: return {_element(memory)};")
    return "\n".join([*lines, "  }", "  return 0;", "}", ""])


def _element(memory: Memory) -> str:
    """Its bytes as a product."""
    each = ELEMENTS[memory]
    numbers = [str(each.nbytes)] if each.nbytes > 1 else []
    return " * ".join([*filter(None, (each.rows, each.lanes)), *numbers])


def _names(name: str, words: Sequence[str]) -> str:
    listed = ", ".join(f'"{word}"' for word in words)
    return f"inline constexpr const char* {name}[] = {{{listed}}};"


def _fields_record() -> str:
    """One struct for all formats: each name once, in the order of the formats."""
    fields = {field.name: field for form in FORMATS for field in (*form.low, *form.high)}
    caption = "// Every field of every format; those of other formats stay 0."
    return "\n".join([caption, "struct InstructionFields {", *_members(fields.values()), "};", ""])


def _uop_record() -> str:
    return "\n".join(["struct Uop {", *_members(UOP), "};", ""])


def _members(fields: Iterable[Field]) -> list[str]:
    return _commented(
        [
            (
                f"{'int32_t' if field.signed else 'uint32_t'} {field.name} = 0;",
                f"{field.unit}: {field.meaning}" if field.unit else field.meaning,
            )
            for field in fields
        ]
    )


def _commented(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Indented lines of code with comments one below the other."""
    width = max(len(code) for code, _ in rows)
    return [f"  {code.ljust(width)}  // {comment}" for code, comment in rows]


def _visitor() -> str:
    lines = [
        "// Calls visit(word, bit, width, field, name) for every field of an opcode's format.",
        "template <typename Fields, typename Visit>",
        "void visit_fields(Opcode opcode, const IndexBits& bits, Fields& f, const Visit& visit) {",
        "  switch (opcode) {",
    ]
    for form in FORMATS:
        visits = [*_visits(form.low, 0), *_visits(form.high, 1)]
        lines += _case(form, [f"      {visit}" for visit in visits])
    return "\n".join([*lines, "  }", "}", ""])


def _uop_visitor() -> str:
    lines = [
        "// The same for the fields of a micro-op, which has one word.",
        "template <typename Fields, typename Visit>",
        "void visit_uop_fields(const IndexBits& bits, Fields& f, const Visit& visit) {",
    ]
    return "\n".join([*lines, *(f"  {visit}" for visit in _visits(UOP, 0)), "}", ""])


def _visits(fields: Sequence[Field], word: int) -> Iterator[str]:
    for field, place in zip(fields, _places(fields, 0), strict=True):
        where = f"{word}, {_sum(place, _cpp)}, {_sum(_width(field), _cpp)}"
        yield f'visit({where}, f.{field.name}, "{field.name}");'


def _operand_visitor() -> str:
    lines = [
        "// Calls visit(operand, values) for every operand that an opcode has in text, in order.",
        "template <typename Visit>",
        "void visit_operands(Opcode opcode, const InstructionFields& f, const Visit& visit) {",
        "  using Values = std::initializer_list<int64_t>;",
        "  switch (opcode) {",
    ]
    for form in FORMATS:
        lines += _case(form, [f"      {_operand(operand)}" for operand in form.operands])
    return "\n".join([*lines, "  }", "}", ""])


def _operand(operand: Operand) -> str:
    flags = f"{str(operand.hexadecimal).lower()}, {str(operand.always).lower()}"
    values = ", ".join(f"f.{name}" for name in operand.fields)
    shape = f'Operand{{"{operand.key}", "{operand.separator}", {flags}}}'
    return f"visit({shape}, Values{{{values}}});"


def _case(form: Format, statements: list[str]) -> list[str]:
    labels = [f"    case Opcode::{_constant(opcode.name)}:" for opcode in form.opcodes]
    if not statements:
        return [*labels[:-1], f"{labels[-1]} return;"]
    return [*labels, *statements, "      return;"]


def _places(fields: Sequence[Field], bit: int) -> Iterator[Sum]:
    """The first bit of every field."""
    total: Counter[tuple[Memory, ...]] = Counter({(): bit})
    for field in fields:
        yield Counter(total)
        total.update(_width(field))


def _width(field: Field) -> Sum:
    indices = {field.width.index_of: 1} if field.width.index_of else {}
    return {(): field.width.bits, **indices}


def _sum(terms: Sum, written: Callable[[tuple[str, ...]], str]) -> str:
    """A sum as text: `9 + 2 * uop`."""
    parts = [str(terms[()])] if terms[()] or len(terms) == 1 else []
    for term, count in terms.items():
        if term:
            text = written(tuple(memory.word for memory in term))
            parts.append(text if count == 1 else f"{count} * {text}")
    return " + ".join(parts)


def _cpp(indices: tuple[str, ...]) -> str:
    bits = [f"bits.{index}" for index in indices]
    return bits[0] if len(bits) == 1 else f"widest({', '.join(bits)})"


def _plain(indices: tuple[str, ...]) -> str:
    return indices[0] if len(indices) == 1 else f"max({', '.join(indices)})"


def _table(fields: Sequence[Field], bit: int) -> list[str]:
    """Rows of the page, below their heading."""
    rows = [*_COLUMNS]
    usual = layout(fields, bit, index_bits(VtaConfig()))
    for field, place, default in zip(fields, _places(fields, bit), usual, strict=True):
        bits = f"{_sum(_width(field), _plain)} from {_sum(place, _plain)}"
        last = default.bit + default.width - 1
        lie = f"{default.bit}" if default.width == 1 else f"{last}..{default.bit}"
        rows.append(f"| `{field.name}` | {bits} | {field.unit} | {field.meaning} | {lie} |")
    return rows


def main(arguments: list[str]) -> int:
    """Make the files, or check them; the exit code."""
    if arguments == ["--check"]:
        found = stale()
        for path in found:
            sys.stderr.write(f"{path.name} is not what the table says; run {Path(__file__).name}\n")
        return 1 if found else 0
    for path, text in files().items():
        path.write_text(text)
        sys.stdout.write(f"{path.relative_to(HERE)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
