/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * GPU-instance profiles of a card and the places where their instances may sit. */
#include "placement.h"

#include <stdio.h>

/* The three versions of the structure have the same fields in other places. */
#define FILL(info, profile)                                      \
    do {                                                         \
        (info)->id = (profile)->id;                              \
        (info)->sliceCount = (profile)->compute_slices;          \
        (info)->instanceCount = (profile)->max_instances;        \
        (info)->multiprocessorCount = (profile)->multiprocessors; \
        (info)->copyEngineCount = (profile)->copy_engines;       \
        (info)->decoderCount = (profile)->decoders;              \
        (info)->encoderCount = (profile)->encoders;              \
        (info)->jpegCount = (profile)->jpegs;                    \
        (info)->ofaCount = (profile)->ofas;                      \
        (info)->memorySizeMB = (profile)->memory_mib;            \
    } while (0)

static unsigned int peer_to_peer(const struct profile *profile)
{
    return (profile->capabilities & NVML_GPU_INSTANCE_PROFILE_CAPS_P2P) != 0;
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int enumerator,
                                                      nvmlGpuInstanceProfileInfo_t *info)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(info && enumerator < NVML_GPU_INSTANCE_PROFILE_COUNT, INVALID_ARGUMENT);
    const struct profile *profile = profile_by_enumerator(target.model, enumerator);
    NEED(profile, NOT_SUPPORTED);
    FILL(info, profile);
    info->isP2pSupported = peer_to_peer(profile);
    return NVML_SUCCESS;
}

static nvmlReturn_t fill_versioned(const struct profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    NEED(profile, NOT_SUPPORTED);
    if (info->version == nvmlGpuInstanceProfileInfo_v3) {
        nvmlGpuInstanceProfileInfo_v3_t *newer = (nvmlGpuInstanceProfileInfo_v3_t *)info;
        FILL(newer, profile);
        newer->capabilities = profile->capabilities;
        snprintf(newer->name, sizeof newer->name, "MIG %s", profile->name);
        return NVML_SUCCESS;
    }
    NEED(info->version == nvmlGpuInstanceProfileInfo_v2, ARGUMENT_VERSION_MISMATCH);
    FILL(info, profile);
    info->isP2pSupported = peer_to_peer(profile);
    snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int enumerator,
                                                       nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(info && enumerator < NVML_GPU_INSTANCE_PROFILE_COUNT, INVALID_ARGUMENT);
    return fill_versioned(profile_by_enumerator(target.model, enumerator), info);
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(info, INVALID_ARGUMENT);
    return fill_versioned(profile_by_id(target.model, id), info);
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                                nvmlGpuInstancePlacement_t *placements,
                                                                unsigned int *count)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(count, INVALID_ARGUMENT);
    NEED(target.model->mig_capable, NOT_SUPPORTED);
    NEED(may_change(), NO_PERMISSION);
    const struct profile *profile = profile_by_id(target.model, id);
    NEED(profile, INVALID_ARGUMENT);
    *count = profile->placement_count;
    for (unsigned int i = 0; placements && i < profile->placement_count; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){profile->placements[i].start, profile->memory_slices};
    return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDeviceGetGpuInstancePossiblePlacements_v2);
