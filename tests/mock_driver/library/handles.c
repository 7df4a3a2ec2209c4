/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * A handle is the address of a byte in an array that nobody touches. The position says kind, card, instances and
 * generation, so nothing is allocated, a stale handle is recognised, and Go, which checks pointers, is content. */
#include "handles.h"

enum { GENERATIONS = 64 };
#define POSITIONS (KIND_COUNT * MAX_GPUS * MAX_GPU_INSTANCES * MAX_COMPUTE_INSTANCES * GENERATIONS)

static char space[POSITIONS];

static void *encode(enum kind kind, unsigned int index, unsigned int gi, unsigned int ci, unsigned int generation)
{
    unsigned int position = kind;
    position = position * MAX_GPUS + index;
    position = position * MAX_GPU_INSTANCES + gi;
    position = position * MAX_COMPUTE_INSTANCES + ci;
    return &space[position * GENERATIONS + generation % GENERATIONS];
}

static bool decode(const void *handle, struct target *target)
{
    uintptr_t position = (uintptr_t)handle - (uintptr_t)space;
    if (position >= sizeof space) return false;
    *target = (struct target){.generation = position % GENERATIONS};
    position /= GENERATIONS;
    target->compute_instance = position % MAX_COMPUTE_INSTANCES;
    position /= MAX_COMPUTE_INSTANCES;
    target->gpu_instance = position % MAX_GPU_INSTANCES;
    position /= MAX_GPU_INSTANCES;
    target->index = position % MAX_GPUS;
    target->kind = (enum kind)(position / MAX_GPUS);
    return true;
}

void *gpu_handle(unsigned int index) { return encode(KIND_GPU, index, 0, 0, 0); }

void *instance_handle(enum kind kind, unsigned int index, unsigned int gi, unsigned int ci)
{
    const struct gpu_instance *instance = &machine->gpus[index].gpu_instances[gi];
    unsigned int generation =
        kind == KIND_GPU_INSTANCE ? instance->generation : instance->compute_instances[ci].generation;
    return encode(kind, index, gi, ci, generation);
}

static nvmlReturn_t resolve(const void *handle, struct target *target)
{
    NEED(decode(handle, target) && target->index < machine->gpu_count, INVALID_ARGUMENT);
    target->gpu = &machine->gpus[target->index];
    target->model = &machine->models[target->gpu->model];
    NEED(!target->gpu->lost, GPU_IS_LOST);
    if (target->kind == KIND_GPU) return NVML_SUCCESS;

    target->gi = &target->gpu->gpu_instances[target->gpu_instance];
    if (target->kind == KIND_GPU_INSTANCE) {
        NEED(target->gi->used && target->gi->generation % GENERATIONS == target->generation, INVALID_ARGUMENT);
        target->profile = &target->model->profiles[target->gi->profile];
        return NVML_SUCCESS;
    }
    target->ci = &target->gi->compute_instances[target->compute_instance];
    bool there = target->gi->used && target->ci->used && target->ci->generation % GENERATIONS == target->generation;
    if (!there) return target->kind == KIND_MIG_DEVICE ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
    target->profile = &target->model->profiles[target->gi->profile];
    target->compute_profile = &target->profile->compute_profiles[target->ci->profile];
    return NVML_SUCCESS;
}

nvmlReturn_t resolve_device(nvmlDevice_t device, struct target *target)
{
    TRY(resolve(device, target));
    NEED(target->kind == KIND_GPU || target->kind == KIND_MIG_DEVICE, INVALID_ARGUMENT);
    return NVML_SUCCESS;
}

static nvmlReturn_t resolve_kind(const void *handle, enum kind kind, struct target *target)
{
    TRY(resolve(handle, target));
    NEED(target->kind == kind, INVALID_ARGUMENT);
    return NVML_SUCCESS;
}
nvmlReturn_t resolve_gpu(nvmlDevice_t device, struct target *target) { return resolve_kind(device, KIND_GPU, target); }
nvmlReturn_t resolve_mig_device(nvmlDevice_t device, struct target *target)
{
    return resolve_kind(device, KIND_MIG_DEVICE, target);
}
nvmlReturn_t resolve_gpu_instance(nvmlGpuInstance_t instance, struct target *target)
{
    return resolve_kind(instance, KIND_GPU_INSTANCE, target);
}
nvmlReturn_t resolve_compute_instance(nvmlComputeInstance_t instance, struct target *target)
{
    return resolve_kind(instance, KIND_COMPUTE_INSTANCE, target);
}

nvmlReturn_t resolve_mig_gpu(nvmlDevice_t device, struct target *target)
{
    TRY(resolve_gpu(device, target));
    NEED(target->model->mig_capable && target->gpu->mig_current, NOT_SUPPORTED);
    return NVML_SUCCESS;
}

uint32_t handle_gpu(const void *handle)
{
    struct target target;
    return decode(handle, &target) ? target.index : ANY;
}
