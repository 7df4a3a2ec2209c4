/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Compute instances: profiles, places, made, listed, destroyed. A place counts in compute slices of its GPU instance. */
#include "mig.h"
#include "processes.h"

#include <stdio.h>
#include <string.h>

static const struct compute_profile *by_id(const struct profile *profile, unsigned int id)
{
    for (unsigned int i = 0; i < profile->compute_profile_count; i++)
        if (profile->compute_profiles[i].id == id) return &profile->compute_profiles[i];
    return NULL;
}

/* Instances of three slices sit at 0 and 4, all others at multiples of their size (assumed). */
static uint32_t start_at(const struct compute_profile *profile, unsigned int place)
{
    return place * (profile->slices == 3 ? 4 : profile->slices);
}

static bool fits(const struct gpu_instance *gi, const struct compute_profile *profile, uint32_t start)
{
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *ci = &gi->compute_instances[i];
        if (ci->used && start < ci->start + ci->size && ci->start < start + profile->slices) return false;
    }
    return true;
}

#define FILL(info, gi, ci)                                                                \
    do {                                                                                  \
        (info)->id = (ci)->id;                                                            \
        (info)->sliceCount = (ci)->slices;                                                \
        (info)->instanceCount = (ci)->max_instances;                                      \
        (info)->multiprocessorCount = (ci)->multiprocessors;                              \
        (info)->sharedCopyEngineCount = (gi)->copy_engines;                               \
        (info)->sharedDecoderCount = (gi)->decoders;                                      \
        (info)->sharedEncoderCount = (gi)->encoders;                                      \
        (info)->sharedJpegCount = (gi)->jpegs;                                            \
        (info)->sharedOfaCount = (gi)->ofas;                                              \
    } while (0)

/* A profile by NVML's number of it, which in every known model is its id. */
static nvmlReturn_t find(nvmlGpuInstance_t instance, unsigned int number, unsigned int engines, struct target *target)
{
    TRY(resolve_gpu_instance(instance, target));
    NEED(number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT, INVALID_ARGUMENT);
    NEED(engines == NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, INVALID_ARGUMENT);
    target->compute_profile = by_id(target->profile, number);
    NEED(target->compute_profile, NOT_SUPPORTED);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned int number,
                                                               unsigned int engines,
                                                               nvmlComputeInstanceProfileInfo_t *info)
{
    struct target target;
    NEED(info, INVALID_ARGUMENT);
    TRY(find(instance, number, engines, &target));
    FILL(info, target.profile, target.compute_profile);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance, unsigned int number,
                                                                unsigned int engines,
                                                                nvmlComputeInstanceProfileInfo_v2_t *info)
{
    struct target target;
    NEED(info, INVALID_ARGUMENT);
    TRY(find(instance, number, engines, &target));
    if (info->version == nvmlComputeInstanceProfileInfo_v3) {
        nvmlComputeInstanceProfileInfo_v3_t *newer = (nvmlComputeInstanceProfileInfo_v3_t *)info;
        FILL(newer, target.profile, target.compute_profile);
        newer->capabilities =
            target.profile->capabilities & NVML_GPU_INSTANCE_PROFILE_CAPS_GFX ? NVML_COMPUTE_INSTANCE_PROFILE_CAPS_GFX : 0;
        snprintf(newer->name, sizeof newer->name, "MIG %s", target.compute_profile->name);
        return NVML_SUCCESS;
    }
    NEED(info->version == nvmlComputeInstanceProfileInfo_v2, ARGUMENT_VERSION_MISMATCH);
    FILL(info, target.profile, target.compute_profile);
    snprintf(info->name, sizeof info->name, "MIG %s", target.compute_profile->name);
    return NVML_SUCCESS;
}

/* The GPU instance and one of its compute-instance profiles, by a privileged user. */
static nvmlReturn_t resolve_profile(nvmlGpuInstance_t instance, unsigned int id, struct target *target)
{
    TRY(resolve_gpu_instance(instance, target));
    target->compute_profile = by_id(target->profile, id);
    NEED(target->compute_profile, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance, unsigned int id,
                                                                     unsigned int *count)
{
    struct target target;
    NEED(count, INVALID_ARGUMENT);
    TRY(resolve_profile(instance, id, &target));
    *count = 0;
    for (unsigned int i = 0; i < target.compute_profile->max_instances; i++)
        *count += fits(target.gi, target.compute_profile, start_at(target.compute_profile, i));
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t instance, unsigned int id,
                                                                      nvmlComputeInstancePlacement_t *placements,
                                                                      unsigned int *count)
{
    struct target target;
    NEED(count, INVALID_ARGUMENT);
    TRY(resolve_profile(instance, id, &target));
    *count = target.compute_profile->max_instances;
    for (unsigned int i = 0; placements && i < *count; i++)
        placements[i] =
            (nvmlComputeInstancePlacement_t){start_at(target.compute_profile, i), target.compute_profile->slices};
    return NVML_SUCCESS;
}

static nvmlReturn_t make(const struct target *target, uint32_t start, nvmlComputeInstance_t *created)
{
    unsigned int id = 0;
    while (id < MAX_COMPUTE_INSTANCES && target->gi->compute_instances[id].used) id++;
    NEED(id < MAX_COMPUTE_INSTANCES, INSUFFICIENT_RESOURCES);
    struct compute_instance *ci = &target->gi->compute_instances[id];
    *ci = (struct compute_instance){
        .used = 1,
        .profile = (uint32_t)(target->compute_profile - target->profile->compute_profiles),
        .start = start,
        .size = target->compute_profile->slices,
        .generation = ++machine->generation,
    };
    mig_device_uuid(target->gpu, target->gpu_instance, start, ci->uuid);
    machine_changed();
    *created = instance_handle(KIND_COMPUTE_INSTANCE, target->index, target->gpu_instance, id);
    return NVML_SUCCESS;
}

/* The first free place is taken (assumed). */
nvmlReturn_t mock_nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int id,
                                                       nvmlComputeInstance_t *created)
{
    struct target target;
    NEED(created, INVALID_ARGUMENT);
    TRY(resolve_profile(instance, id, &target));
    for (unsigned int i = 0; i < target.compute_profile->max_instances; i++) {
        uint32_t start = start_at(target.compute_profile, i);
        if (fits(target.gi, target.compute_profile, start)) return make(&target, start, created);
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t mock_nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t instance, unsigned int id,
                                                                    const nvmlComputeInstancePlacement_t *wanted,
                                                                    nvmlComputeInstance_t *created)
{
    struct target target;
    NEED(wanted && created, INVALID_ARGUMENT);
    TRY(resolve_profile(instance, id, &target));
    for (unsigned int i = 0; i < target.compute_profile->max_instances; i++) {
        if (start_at(target.compute_profile, i) != wanted->start || target.compute_profile->slices != wanted->size) continue;
        NEED(fits(target.gi, target.compute_profile, wanted->start), INSUFFICIENT_RESOURCES);
        return make(&target, wanted->start, created);
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t mock_nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance)
{
    struct target target;
    TRY(resolve_compute_instance(instance, &target));
    NEED(may_change(), NO_PERMISSION);
    NEED(!process_on(&target), IN_USE);
    memset(target.ci, 0, sizeof *target.ci);
    machine_changed();
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int id,
                                                     nvmlComputeInstance_t *instances, unsigned int *count)
{
    struct target target;
    NEED(instances && count, INVALID_ARGUMENT);
    TRY(resolve_profile(instance, id, &target));
    *count = 0;
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) {
        const struct compute_instance *ci = &target.gi->compute_instances[i];
        if (ci->used && &target.profile->compute_profiles[ci->profile] == target.compute_profile)
            instances[(*count)++] = instance_handle(KIND_COMPUTE_INSTANCE, target.index, target.gpu_instance, i);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                        nvmlComputeInstance_t *found)
{
    struct target target;
    TRY(resolve_gpu_instance(instance, &target));
    NEED(found, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    NEED(id < MAX_COMPUTE_INSTANCES && target.gi->compute_instances[id].used, NOT_FOUND);
    *found = instance_handle(KIND_COMPUTE_INSTANCE, target.index, target.gpu_instance, id);
    return NVML_SUCCESS;
}

/* The first version of the structure ends before the placement. */
static nvmlReturn_t info(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *found, size_t size)
{
    struct target target;
    TRY(resolve_compute_instance(instance, &target));
    NEED(found, INVALID_ARGUMENT);
    nvmlComputeInstanceInfo_t whole = {
        .device = gpu_handle(target.index),
        .gpuInstance = instance_handle(KIND_GPU_INSTANCE, target.index, target.gpu_instance, 0),
        .id = target.compute_instance,
        .profileId = target.compute_profile->id,
        .placement = {target.ci->start, target.ci->size},
    };
    memcpy(found, &whole, size);
    return NVML_SUCCESS;
}
nvmlReturn_t mock_nvmlComputeInstanceGetInfo(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *found)
{
    return info(instance, found, offsetof(nvmlComputeInstanceInfo_t, placement));
}
nvmlReturn_t mock_nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *found)
{
    return info(instance, found, sizeof *found);
}
