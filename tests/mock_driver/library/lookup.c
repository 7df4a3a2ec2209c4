/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Finding a device: by index, UUID, PCI address, serial number; MIG devices by index and UUID. */
#include "handles.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t mock_nvmlDeviceGetCount_v2(unsigned int *count)
{
    NEED(count, INVALID_ARGUMENT);
    *count = machine->gpu_count;
    return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

static nvmlReturn_t found(unsigned int index, nvmlDevice_t *device)
{
    NEED(!machine->gpus[index].lost, GPU_IS_LOST);
    *device = gpu_handle(index);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    NEED(device && index < machine->gpu_count, INVALID_ARGUMENT);
    return found(index, device);
}
ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

nvmlReturn_t mock_nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    NEED(serial && device, INVALID_ARGUMENT);
    for (unsigned int i = 0; i < machine->gpu_count; i++)
        if (*serial && strcmp(serial, machine->gpus[i].serial) == 0) return found(i, device);
    return NVML_ERROR_NOT_FOUND;
}

static bool find_mig_device(unsigned int index, const char *uuid, nvmlDevice_t *device)
{
    const struct gpu *gpu = &machine->gpus[index];
    struct mig_device place = {0};
    for (; mig_device_next(gpu, &place); place.compute_instance++) {
        if (strcmp(uuid, gpu->gpu_instances[place.gpu_instance].compute_instances[place.compute_instance].uuid) != 0)
            continue;
        *device = instance_handle(KIND_MIG_DEVICE, index, place.gpu_instance, place.compute_instance);
        return true;
    }
    return false;
}

nvmlReturn_t mock_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    NEED(uuid && device, INVALID_ARGUMENT);
    for (unsigned int i = 0; i < machine->gpu_count; i++) {
        if (strcmp(uuid, machine->gpus[i].uuid) == 0) return found(i, device);
        if (!machine->gpus[i].lost && find_mig_device(i, uuid, device)) return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

/* The formats that nvml.h names; a domain that is not given is 0. */
nvmlReturn_t mock_nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned int domain = 0, bus, slot, function = 0;
    NEED(address && device, INVALID_ARGUMENT);
    if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        NEED(sscanf(address, "%x:%x.%x", &bus, &slot, &function) == 3, INVALID_ARGUMENT);
    }
    for (unsigned int i = 0; i < machine->gpu_count; i++) {
        const struct gpu *gpu = &machine->gpus[i];
        if (gpu->pci_domain == domain && gpu->pci_bus == bus && gpu->pci_device == slot && function == 0)
            return found(i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}
ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);
