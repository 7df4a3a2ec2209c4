# Copyright (c) 2026 gpuops.sharing contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations


class ModuleDocFragment:
    """Options of every module that talks to the NVIDIA driver."""

    DOCUMENTATION = r"""
options:
  backend:
    description:
      - How to talk to the driver.
      - V(nvml) is the driver's library, through the Python package C(nvidia-ml-py) in the interpreter that runs the module.
      - V(nvidia_smi) is the driver's own command C(nvidia-smi), which needs nothing else on the host.
      - V(auto) takes V(nvml) where the package is installed, else V(nvidia_smi).
    type: str
    default: auto
    choices: [auto, nvml, nvidia_smi]
  timeout:
    description:
      - Seconds, above 0 and up to 3600, that one command may take and that the task waits for the host's lock.
      - A command that takes longer is ended together with its children, and the task fails.
      - A call into the driver's library (backend V(nvml)) cannot be bounded.
    type: float
    default: 30.0
requirements:
  - The NVIDIA driver, on the host that is managed.
  - Python package C(nvidia-ml-py) 11.515 or newer on that host, for backend V(nvml).
  - The command C(timeout) of GNU coreutils.
notes:
  - Indices are those of NVML and C(nvidia-smi), in order of PCI address; CUDA programs may count differently unless C(CUDA_DEVICE_ORDER=PCI_BUS_ID) is set.
"""

    GPUS = r"""
options:
  gpus:
    description:
      - The GPUs that the task is about, each by index (V(0)), UUID (V(GPU-...)) or PCI address (V(0000:07:00.0)); or V(all).
      - Put a PCI address in quotes, YAML reads some as numbers.
      - Naming one GPU twice is an error, also in two spellings. So is an empty list or an empty string.
      - V(all) leaves out a GPU that no longer answers; naming such a GPU is an error.
    type: list
    elements: str
    default: [all]
"""

    STATE = r"""
options:
  state_directory:
    description:
      - Directory of what is remembered between runs.
      - With another than the default, the lock that keeps two runs apart lies there too, instead of in C(/run/gpuops-sharing).
    type: path
    default: /var/lib/gpuops-sharing
"""
