# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""mock-driver: a mocked NVIDIA driver for tests and demonstrations."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from command import environment, machine, show  # noqa: E402
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


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mock-driver", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    on_state = argparse.ArgumentParser(add_help=False)
    on_state.add_argument("--state", type=state_path, default=state_path(), help="default: $MOCK_DRIVER_STATE, then %(default)s")
    programs = argparse.ArgumentParser(add_help=False)
    programs.add_argument("--programs", choices=["stand-ins", "none"], default="stand-ins", help="what goes in front of PATH")

    part = commands.add_parser("run", parents=[programs], help="run a command on a machine of its own", usage="%(prog)s MACHINE [--programs ...] -- COMMAND ...")
    part.add_argument("machine")
    part.set_defaults(action=run)
    part = commands.add_parser("up", parents=[on_state], help="start a machine")
    part.add_argument("machine")
    part.set_defaults(action=up)
    part = commands.add_parser("down", parents=[on_state], help="take the machine down")
    part.set_defaults(action=down)
    part = commands.add_parser("env", parents=[on_state, programs], help="print the environment as shell lines")
    part.set_defaults(action=env)
    part = commands.add_parser("show", parents=[on_state], help="show the machine")
    part.set_defaults(action=show_machine)
    own, command = arguments, []
    if "--" in arguments:
        place = arguments.index("--")
        own, command = arguments[:place], arguments[place + 1 :]
    options = parser.parse_args(own)
    options.command = command
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        return int(options.action(options))
    except MockDriverError as error:
        print(f"mock-driver: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
