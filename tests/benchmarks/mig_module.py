# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cut eight A100 into 56 instances as nvidia_mig does, without Ansible: read, plan, apply, read back, compare; then print what was read of each."""

from __future__ import annotations

import contextlib
import json
import typing as t

from ansible_collections.gpuops.sharing.plugins.module_utils._command import Answer, Commands
from ansible_collections.gpuops.sharing.plugins.module_utils._driver.choice import open_driver
from ansible_collections.gpuops.sharing.plugins.module_utils._mig import layout
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.card import Card
from ansible_collections.gpuops.sharing.plugins.module_utils._mig.reconcile import Host, Options

WISH = {"gpus": "all", "instances": [{"profile": "1g.5gb", "count": 7}]}


def no_command(
    argv: t.Sequence[str],
    stdin: str | None = None,
    environment: t.Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Answer:
    """Backend nvml runs none."""
    raise AssertionError(argv)


def main() -> None:
    commands = Commands(no_command, lambda name: None, 30)
    with contextlib.closing(open_driver("nvml", commands)) as driver:
        host = Host(driver, commands, Options())
        before = host.read(layout.choose(layout.parse([WISH]), driver.gpus()))
        after, _done = host.apply(before, host.plan(before))
    print(json.dumps({reading.gpu.index: table(reading.card) for reading in after}))


def table(card: Card | None) -> list[list[t.Any]]:
    """Return the instances: ids of the GPU and the compute instance, place, UUID."""
    instances = card.instances if card else ()
    return sorted(
        [one.id, part.id, list(one.placement), part.uuid] for one in instances for part in one.compute_instances
    )


if __name__ == "__main__":
    main()
