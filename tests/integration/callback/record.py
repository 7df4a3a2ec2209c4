# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write every task's result to the file $GPUOPS_RECORDS, a line of JSON each, with what the machine in $GPUOPS_MACHINE looks like after it."""

from __future__ import annotations

DOCUMENTATION = """
name: record
type: aggregate
short_description: Write results and the state of a mocked machine as JSON
description: For the integration tests.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from ansible.executor.task_result import CallbackTaskResult
from ansible.plugins.callback import CallbackBase

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import snapshot


class CallbackModule(CallbackBase):
    """Records."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _record(self, event: str, result: CallbackTaskResult) -> None:
        machine = snapshot.take(Path(os.environ["GPUOPS_MACHINE"]))
        record = {"event": event, "task": result.task.get_name(), "result": result.result, "machine": machine}
        with open(os.environ["GPUOPS_RECORDS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        self._record("ok", result)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        self._record("failed", result)

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        self._record("skipped", result)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self._record("unreachable", result)


__all__: list[Any] = ["CallbackModule"]
