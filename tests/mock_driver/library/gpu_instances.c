/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * GPU instances: made, listed, destroyed. nvml.h names a privileged user for all but the info of a handle. */
#include "placement.h"
#include "processes.h"

#include <string.h>

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    NEED(count, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    const struct profile *profile = profile_by_id(target.model, id);
    NEED(profile, NOT_SUPPORTED);
    *count = gpu_instance_capacity(target.gpu, profile);
    return NVML_SUCCESS;
}

static nvmlReturn_t make(const struct target *target, const struct profile *profile, const struct placement *place,
                         nvmlGpuInstance_t *created)
{
    NEED(place, INSUFFICIENT_RESOURCES);
    target->gpu->gpu_instances[place->instance_id] = (struct gpu_instance){
        .used = 1,
        .profile = (uint32_t)(profile - target->model->profiles),
        .start = place->start,
        .size = profile->memory_slices,
        .generation = ++machine->generation,
    };
    machine_changed();
    *created = instance_handle(KIND_GPU_INSTANCE, target->index, place->instance_id, 0);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *created)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    const struct profile *profile = profile_by_id(target.model, id);
    NEED(created && profile, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    return make(&target, profile, gpu_instance_choice(target.gpu, profile), created);
}

nvmlReturn_t mock_nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                           const nvmlGpuInstancePlacement_t *wanted,
                                                           nvmlGpuInstance_t *created)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    const struct profile *profile = profile_by_id(target.model, id);
    NEED(wanted && created && profile, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    for (unsigned int i = 0; i < profile->placement_count; i++) {
        const struct placement *place = &profile->placements[i];
        if (place->start != wanted->start || profile->memory_slices != wanted->size) continue;
        return make(&target, profile, gpu_instance_fits(target.gpu, profile, place) ? place : NULL, created);
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t mock_nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct target target;
    TRY(resolve_gpu_instance(instance, &target));
    NEED(may_change(), NO_PERMISSION);
    for (unsigned int i = 0; i < MAX_COMPUTE_INSTANCES; i++) NEED(!target.gi->compute_instances[i].used, IN_USE);
    NEED(!process_on(&target), IN_USE);
    memset(target.gi, 0, sizeof *target.gi);
    machine_changed();
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
                                            unsigned int *count)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    const struct profile *profile = profile_by_id(target.model, id);
    NEED(instances && count && profile, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    *count = 0;
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const struct gpu_instance *instance = &target.gpu->gpu_instances[i];
        if (instance->used && &target.model->profiles[instance->profile] == profile)
            instances[(*count)++] = instance_handle(KIND_GPU_INSTANCE, target.index, i, 0);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    NEED(instance, INVALID_ARGUMENT);
    NEED(may_change(), NO_PERMISSION);
    NEED(id < MAX_GPU_INSTANCES && target.gpu->gpu_instances[id].used, NOT_FOUND);
    *instance = instance_handle(KIND_GPU_INSTANCE, target.index, id, 0);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct target target;
    TRY(resolve_gpu_instance(instance, &target));
    NEED(info, INVALID_ARGUMENT);
    *info = (nvmlGpuInstanceInfo_t){
        .device = gpu_handle(target.index),
        .id = target.gpu_instance,
        .profileId = target.profile->id,
        .placement = {target.gi->start, target.gi->size},
    };
    return NVML_SUCCESS;
}
