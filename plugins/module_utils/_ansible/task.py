# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""PRIVATE to the collection. How every module of this collection begins and ends."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._command import ENDED_BY_TIMEOUT, UNHEARD, Answer, Commands, bounded
from .._convergence.lock import DEFAULT_STATE
from .._driver.choice import BACKENDS
from .._errors import BadOption, CommandFailed, CommandTimeout, SharingError
from .._gpu import Gpu

GPUS = {"gpus": {"type": "list", "elements": "str", "default": ["all"]}}
COMMON: dict[str, t.Any] = {
    "backend": {"type": "str", "default": "auto", "choices": list(BACKENDS)},
    "timeout": {"type": "float", "default": 30.0},
}
STATE: dict[str, t.Any] = {"state_directory": {"type": "path", "default": DEFAULT_STATE}}


def run(specification: t.Mapping[str, t.Any], body: t.Callable[[AnsibleModule, Commands], dict[str, t.Any]]) -> None:
    """Build the module, run ``body``, and end with its result; an error of ours becomes a failure with its details."""
    module = AnsibleModule(argument_spec=dict(specification), supports_check_mode=True)
    try:
        result = body(module, commands(module))
    except SharingError as exc:
        module.fail_json(msg=exc.message, error=type(exc).__name__, **exc.details)
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    module.exit_json(**result)


def commands(module: AnsibleModule) -> Commands:
    """Return how this module runs programs: in the C locale, without a shell, ended with all their children when time is up."""
    seconds = float(module.params["timeout"])
    if not 0 < seconds <= 3600:
        raise BadOption("timeout", module.params["timeout"], "is out of range; give seconds above 0 and up to 3600")

    def execute(
        argv: t.Sequence[str],
        stdin: str | None = None,
        environment: t.Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> Answer:
        bound = seconds if limit is None else limit
        try:
            rc, out, err = module.run_command(
                bounded(argv, bound),
                data=stdin,
                binary_data=True,
                environ_update={"LC_ALL": "C", **(environment or {})},
                expand_user_and_vars=False,
                handle_exceptions=False,
            )
        except BrokenPipeError:
            return Answer(UNHEARD, "", "")
        except OSError as exc:
            raise CommandFailed(f"Cannot run '{' '.join(argv)}': {exc}") from exc
        if rc in ENDED_BY_TIMEOUT:
            raise CommandTimeout(
                f"'{' '.join(argv)}' did not end within {bound:g} s and was ended; the driver or the daemon may hang, or raise timeout",
                cmd=list(argv),
            )
        return Answer(rc, out, err)

    return Commands(execute, module.get_bin_path, seconds)


def entry(gpu: Gpu, before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return how a result speaks of a GPU."""
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pci_bus_id": gpu.pci_bus_id,
        "name": gpu.name,
        "before": dict(before),
        "after": dict(after),
    }
