/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What can be set on a device: compute mode, persistence mode, accounting. */
#include "handles.h"

/* A MIG device has a compute mode of its own (nvml.h 13.3 and newer: "the device or MIG device"). */
static uint32_t *compute_mode(const struct target *target)
{
    return target->kind == KIND_MIG_DEVICE ? &target->ci->compute_mode : &target->gpu->compute_mode;
}

static void set(uint32_t *setting, uint32_t value)
{
    if (*setting != value) machine_changed();
    *setting = value;
}

nvmlReturn_t mock_nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(mode, INVALID_ARGUMENT);
    *mode = (nvmlComputeMode_t)*compute_mode(&target);
    return NVML_SUCCESS;
}

/* Assumed: EXCLUSIVE_THREAD, "Support Removed" in nvml.h, is NOT_SUPPORTED, and so is any mode on a card in MIG mode
 * (the open kernel module answers so, and nvidia-smi has a text for just that case). */
nvmlReturn_t mock_nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED((unsigned int)mode < NVML_COMPUTEMODE_COUNT, INVALID_ARGUMENT);
    NEED(mode != NVML_COMPUTEMODE_EXCLUSIVE_THREAD, NOT_SUPPORTED);
    NEED(may_change(), NO_PERMISSION);
    NEED(target.kind == KIND_MIG_DEVICE || !target.gpu->mig_current, NOT_SUPPORTED);
    set(compute_mode(&target), mode);
    return NVML_SUCCESS;
}

static nvmlReturn_t get_switch(nvmlDevice_t device, size_t offset, nvmlEnableState_t *mode)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(mode, INVALID_ARGUMENT);
    *mode = *(const uint32_t *)((const char *)target.gpu + offset);
    return NVML_SUCCESS;
}

static nvmlReturn_t set_switch(nvmlDevice_t device, size_t offset, nvmlEnableState_t mode)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED((unsigned int)mode <= NVML_FEATURE_ENABLED, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    set((uint32_t *)((char *)target.gpu + offset), mode);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return get_switch(device, offsetof(struct gpu, persistence), mode);
}
nvmlReturn_t mock_nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return set_switch(device, offsetof(struct gpu, persistence), mode);
}
nvmlReturn_t mock_nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return get_switch(device, offsetof(struct gpu, accounting), mode);
}
nvmlReturn_t mock_nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return set_switch(device, offsetof(struct gpu, accounting), mode);
}
