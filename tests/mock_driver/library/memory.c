/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Memory of a device: what its processes hold is used, the rest is free. */
#include "processes.h"

#define MIB (1024ull * 1024ull)

struct memory {
    unsigned long long total, reserved, used;
};

/* MIG devices of one GPU instance share its memory, of which the driver takes a little. For a card in MIG mode the sum is
 * told to privileged users only (nvml.h). */
static nvmlReturn_t memory(nvmlDevice_t device, struct memory *memory)
{
    struct target target;
    TRY(resolve_device(device, &target));
    if (target.kind == KIND_MIG_DEVICE) target.kind = KIND_GPU_INSTANCE;
    else NEED(!target.gpu->mig_current || may_change(), NO_PERMISSION);
    memory->used = process_memory(&target);
    if (target.kind == KIND_GPU) {
        memory->total = target.model->memory_mib * MIB;
        memory->reserved = target.model->memory_reserved_mib == UNKNOWN ? 0 : target.model->memory_reserved_mib * MIB;
    } else {
        memory->total = target.profile->memory_mib * MIB;
        memory->used += target.model->mig_used_mib * MIB;
        memory->reserved = 0;
    }
    if (memory->used > memory->total - memory->reserved) memory->used = memory->total - memory->reserved;
    return NVML_SUCCESS;
}

/* The first version counts what the driver keeps for itself as used, the second shows it apart. */
nvmlReturn_t mock_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info)
{
    struct memory found;
    NEED(info, INVALID_ARGUMENT);
    TRY(memory(device, &found));
    info->total = found.total;
    info->used = found.used + found.reserved;
    info->free = found.total - info->used;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info)
{
    struct memory found;
    NEED(info, INVALID_ARGUMENT);
    NEED(info->version == nvmlMemory_v2, ARGUMENT_VERSION_MISMATCH);
    TRY(memory(device, &found));
    info->total = found.total;
    info->reserved = found.reserved;
    info->used = found.used;
    info->free = found.total - found.reserved - found.used;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *info)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(info, INVALID_ARGUMENT);
    NEED(target.model->bar1_mib != UNKNOWN, NOT_SUPPORTED);
    if (target.kind == KIND_GPU) {
        info->bar1Total = target.model->bar1_mib * MIB;
        info->bar1Used = MIB;
    } else {
        /* By memory slices, less one MiB: 8191, 16383, 32767 MiB on an A100 in NVIDIA's MIG User Guide. */
        info->bar1Total = (target.model->bar1_mib / target.model->mig_memory_slices * target.gi->size - 1) * MIB;
        info->bar1Used = 0;
    }
    info->bar1Free = info->bar1Total - info->bar1Used;
    return NVML_SUCCESS;
}
