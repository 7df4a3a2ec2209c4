/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * MIG: the mode, and MIG devices where instances exist. */
#include "mig.h"
#include "processes.h"

#include <stdio.h>
#include <string.h>

bool mig_device_next(const struct gpu *gpu, struct mig_device *place)
{
    for (; place->gpu_instance < MAX_GPU_INSTANCES; place->gpu_instance++, place->compute_instance = 0) {
        const struct gpu_instance *gi = &gpu->gpu_instances[place->gpu_instance];
        for (; gi->used && place->compute_instance < MAX_COMPUTE_INSTANCES; place->compute_instance++)
            if (gi->compute_instances[place->compute_instance].used) return true;
    }
    return false;
}

/* As the driver's, it depends on the card and the place only, so that the same layout has the same UUIDs again, and so has an
 * instance of another size that begins where the former did. The driver hashes with SHA-1; any mixing does here. */
void mig_device_uuid(const struct gpu *gpu, unsigned int gpu_instance, unsigned int start, char text[MIG_UUID_SIZE])
{
    char seed[96];
    uint64_t high = 14695981039346656037u, low = 0x9e3779b97f4a7c15u;
    snprintf(seed, sizeof seed, "%s/%u/%u", gpu->uuid, gpu_instance, start);
    for (const char *byte = seed; *byte; byte++) {
        high = (high ^ (unsigned char)*byte) * 1099511628211u;
        low = (low ^ high) * 1099511628211u;
        low ^= low >> 29;
    }
    snprintf(text, MIG_UUID_SIZE, "MIG-%08x-%04x-5%03x-%04x-%012llx", (unsigned int)(high >> 32),
             (unsigned int)(high >> 16) & 0xffffu, (unsigned int)high & 0xfffu,
             0x8000u | ((unsigned int)(low >> 48) & 0x3fffu), (unsigned long long)(low & 0xffffffffffffu));
}

unsigned int mig_device_index(const struct gpu *gpu, const struct mig_device *device)
{
    unsigned int index = 0;
    struct mig_device place = {0};
    for (; mig_device_next(gpu, &place); place.compute_instance++, index++)
        if (place.gpu_instance == device->gpu_instance && place.compute_instance == device->compute_instance) break;
    return index;
}

void mig_device_name(const struct target *target, char *text, size_t size)
{
    snprintf(text, size, "MIG %s", target->compute_profile->name);
}

nvmlReturn_t mock_nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(current && pending, INVALID_ARGUMENT);
    NEED(target.model->mig_capable, NOT_SUPPORTED);
    *current = target.gpu->mig_current;
    *pending = target.gpu->mig_pending;
    return NVML_SUCCESS;
}

static bool has_instances(const struct gpu *gpu)
{
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++)
        if (gpu->gpu_instances[i].used) return true;
    return false;
}

/* The mode becomes effective at once on an idle card, whether the driver has to reset it for that (Ampere) or not (Hopper and
 * newer); else it stays pending, and *activation says why. */
nvmlReturn_t mock_nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(activation && mode <= NVML_DEVICE_MIG_ENABLE, INVALID_ARGUMENT);
    NEED(target.model->mig_capable, NOT_SUPPORTED);
    NEED(may_change(), NO_PERMISSION);
    NEED(mode || !has_instances(target.gpu), IN_USE);
    struct gpu *gpu = target.gpu;
    *activation = NVML_SUCCESS;
    if (gpu->mig_pending != mode) machine_changed();
    gpu->mig_pending = mode;
    if (gpu->mig_current == mode) return NVML_SUCCESS;
    if (process_on(&target))
        *activation = NVML_ERROR_IN_USE;
    else if (gpu->mig_activation)
        *activation = (nvmlReturn_t)gpu->mig_activation;
    else {
        gpu->mig_current = mode;
        machine_changed();
    }
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(count, INVALID_ARGUMENT);
    *count = target.model->mig_capable ? target.model->mig_max_devices : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(is_mig, INVALID_ARGUMENT);
    *is_mig = target.kind == KIND_MIG_DEVICE;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *found)
{
    struct target target;
    TRY(resolve_mig_gpu(device, &target));
    NEED(found, INVALID_ARGUMENT);
    NEED(index < target.model->mig_max_devices, INVALID_ARGUMENT);
    struct mig_device place = {0};
    for (; mig_device_next(target.gpu, &place); place.compute_instance++)
        if (index-- == 0) {
            *found = instance_handle(KIND_MIG_DEVICE, target.index, place.gpu_instance, place.compute_instance);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t mock_nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device, nvmlDevice_t *device)
{
    struct target target;
    TRY(resolve_mig_device(mig_device, &target));
    NEED(device, INVALID_ARGUMENT);
    *device = gpu_handle(target.index);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct target target;
    TRY(resolve_mig_device(device, &target));
    NEED(id, INVALID_ARGUMENT);
    *id = target.gpu_instance;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    struct target target;
    TRY(resolve_mig_device(device, &target));
    NEED(id, INVALID_ARGUMENT);
    *id = target.compute_instance;
    return NVML_SUCCESS;
}

/* What a MIG device has: engines and memory are its GPU instance's, which all of its compute instances share. */
static nvmlReturn_t attributes(nvmlDevice_t device, nvmlDeviceAttributes_t *found, size_t size)
{
    struct target target;
    TRY(resolve_mig_device(device, &target));
    NEED(found, INVALID_ARGUMENT);
    nvmlDeviceAttributes_t whole = {
        .multiprocessorCount = target.compute_profile->multiprocessors,
        .sharedCopyEngineCount = target.profile->copy_engines,
        .sharedDecoderCount = target.profile->decoders,
        .sharedEncoderCount = target.profile->encoders,
        .sharedJpegCount = target.profile->jpegs,
        .sharedOfaCount = target.profile->ofas,
        .gpuInstanceSliceCount = target.profile->compute_slices,
        .computeInstanceSliceCount = target.compute_profile->slices,
        .memorySizeMB = target.profile->memory_mib,
    };
    memcpy(found, &whole, size);
    return NVML_SUCCESS;
}
nvmlReturn_t mock_nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *found)
{
    return attributes(device, found, offsetof(nvmlDeviceAttributes_t, memorySizeMB));
}
nvmlReturn_t mock_nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *found)
{
    return attributes(device, found, sizeof *found);
}
