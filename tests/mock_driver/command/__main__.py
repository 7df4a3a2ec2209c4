# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""mock-driver: a mocked NVIDIA driver for tests and demonstrations."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

from command import disturb, environment, facts, machine, record, show  # noqa: E402
from library.faults import SPECIAL  # noqa: E402
from library.processes import KINDS  # noqa: E402
from library.state import MockDriverError, create_state, open_state, state_path  # noqa: E402


def run(options: argparse.Namespace) -> int:
    if not options.command:
        raise MockDriverError("give the command to run after --")
    state = machine.load(options.machine)
    with tempfile.TemporaryDirectory(prefix="mock-driver.") as folder:
        path = Path(folder) / "state"
        create_state(state, path)
        return environment.run(options.command, environment.variables(path, options.programs))


def up(options: argparse.Namespace) -> int:
    create_state(machine.load(options.machine), options.state)
    return 0


def down(options: argparse.Namespace) -> int:
    with open_state(options.state) as state:
        state.up = 0
    options.state.unlink()
    return 0


def env(options: argparse.Namespace) -> int:
    for name, value in environment.variables(options.state.resolve(), options.programs).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def show_machine(options: argparse.Namespace) -> int:
    with open_state(options.state) as state:
        print(show.show(state))
    return 0


def list_machines(_options: argparse.Namespace) -> int:
    print(
        show.table(
            [[name, str(facts.read(machine.machine_file(name)).take("description", ""))] for name in machine.names()]
        )
    )
    return 0


def position(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("calls are counted from 1")
    return number


def add_machine_commands(commands: Any, on_state: argparse.ArgumentParser) -> None:
    """Commands that start, end and show machines."""
    programs = argparse.ArgumentParser(add_help=False)
    programs.add_argument(
        "--programs", choices=["stand-ins", "none"], default="stand-ins", help="what goes in front of PATH"
    )
    part = commands.add_parser(
        "run",
        parents=[programs],
        help="run a command on a machine of its own and take the machine down, with all that the command left running",
        usage="%(prog)s MACHINE [--programs {stand-ins,none}] -- COMMAND ...",
    )
    part.add_argument("machine")
    part.set_defaults(action=run)
    part = commands.add_parser("up", parents=[on_state], help="start a machine")
    part.add_argument("machine")
    part.set_defaults(action=up)
    for name, action, text in (
        ("down", down, "take the machine down"),
        ("show", show_machine, "show the machine"),
        ("reboot", disturb.reboot, "reset what a reboot of the host resets"),
    ):
        commands.add_parser(name, parents=[on_state], help=text).set_defaults(action=action)
    part = commands.add_parser("env", parents=[on_state, programs], help="print the environment as shell lines")
    part.set_defaults(action=env)
    commands.add_parser("machines", help="list the machines that are known").set_defaults(action=list_machines)


def add_disturbing_commands(commands: Any, on_state: argparse.ArgumentParser) -> None:
    """Commands that do to a machine what happens to machines."""
    part = commands.add_parser("process", help="put processes on cards")
    verbs = part.add_subparsers(dest="verb", required=True)
    for verb in ("add", "remove", "list"):
        inner = verbs.add_parser(verb, parents=[on_state])
        inner.set_defaults(action=disturb.process)
        if verb != "list":
            inner.add_argument("gpu", help="index, UUID or PCI address; or a MIG device's UUID")
            inner.add_argument("pid", type=position)
        if verb == "add":
            inner.add_argument("--kind", choices=list(KINDS), default="compute")
            inner.add_argument("--memory", type=int, default=0, metavar="MIB")
            inner.add_argument("--gi", type=int, help="GPU instance id, for a process in a MIG device")
            inner.add_argument("--ci", type=int, help="compute instance id")
    part = commands.add_parser("fault", parents=[on_state], help="let an NVML function or a stand-in program go wrong")
    part.add_argument(
        "target", help="an NVML function (without _vN: every version of it) or a program; or: list, clear"
    )
    part.add_argument("code", nargs="?", help=f"an NVML code by name or number, or {', '.join(SPECIAL)}")
    which = part.add_mutually_exclusive_group()
    which.add_argument("--from", dest="first", type=position, metavar="N", help="from the N-th call on")
    which.add_argument("--only", type=position, metavar="N", help="at the N-th call only")
    part.add_argument("--gpu", help="only for this card")
    part.set_defaults(action=disturb.fault)
    for name, lost in (("lose", 1), ("find", 0)):
        part = commands.add_parser(
            name, parents=[on_state], help=("let a card fall off the bus", "bring a lost card back")[not lost]
        )
        part.add_argument("gpu", help="index, UUID or PCI address")
        part.set_defaults(action=disturb.lose, lost=lost)


def add_recording_commands(commands: Any, on_state: argparse.ArgumentParser) -> None:
    """Commands that tell what was asked of a machine."""
    part = commands.add_parser("calls", parents=[on_state], help="count the NVML calls so far")
    part.add_argument("--json", action="store_true")
    part.add_argument("--reset", action="store_true", help="start to count anew")
    part.set_defaults(action=record.calls)
    part = commands.add_parser("trace", parents=[on_state], help="record every NVML call")
    part.add_argument("verb", choices=["on", "off", "show"])
    part.set_defaults(action=record.trace)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mock-driver", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    on_state = argparse.ArgumentParser(add_help=False)
    on_state.add_argument(
        "--state", type=state_path, default=state_path(), help="default: $MOCK_DRIVER_STATE, here %(default)s"
    )
    add_machine_commands(commands, on_state)
    add_disturbing_commands(commands, on_state)
    add_recording_commands(commands, on_state)
    own, command = arguments, []
    if "--" in arguments:
        place = arguments.index("--")
        own, command = arguments[:place], arguments[place + 1 :]
    options = parser.parse_args(own)
    if command and options.action is not run:
        parser.error("only run takes a command after --")
    options.command = command
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        return int(options.action(options))
    except (MockDriverError, OSError) as error:
        print(f"mock-driver: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
