/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Events: a set can be made and waited on, but nothing ever happens. nvidia-smi stops without sets. */
#include "handles.h"

#include <stdlib.h>

nvmlReturn_t mock_nvmlEventSetCreate(nvmlEventSet_t *set)
{
    NEED(set, INVALID_ARGUMENT);
    *set = malloc(1);
    NEED(*set, MEMORY);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlEventSetFree(nvmlEventSet_t set)
{
    NEED(set, INVALID_ARGUMENT);
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct target target;
    (void)types;
    TRY(resolve_gpu(device, &target));
    NEED(set, INVALID_ARGUMENT);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(types, INVALID_ARGUMENT);
    *types = nvmlEventTypeXidCriticalError;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
    NEED(set && data, INVALID_ARGUMENT);
    call_sleep(milliseconds);
    return NVML_ERROR_TIMEOUT;
}
ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2);
