/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Power, clocks, temperatures, ECC, load: an idle card, with the numbers of its model. */
#include "handles.h"

#include <string.h>
#include <unistd.h>

static nvmlReturn_t give(uint32_t number, unsigned int *value)
{
    NEED(value, INVALID_ARGUMENT);
    NEED(number != UNKNOWN, NOT_SUPPORTED);
    *value = number;
    return NVML_SUCCESS;
}

#define READING(name, expression)                                   \
    nvmlReturn_t mock_##name(nvmlDevice_t device, unsigned int *value) \
    {                                                               \
        struct target target;                                       \
        TRY(resolve_device(device, &target));                       \
        return give((expression), value);                           \
    }
READING(nvmlDeviceGetPowerUsage, target.model->power_draw_mw)
READING(nvmlDeviceGetPowerManagementLimit, target.model->power_limit_mw)
READING(nvmlDeviceGetPowerManagementDefaultLimit, target.model->power_limit_mw)
READING(nvmlDeviceGetEnforcedPowerLimit, target.model->power_limit_mw)
READING(nvmlDeviceGetAccountingBufferSize, 4000)

#define CONSTANT(name, type, constant)                         \
    nvmlReturn_t mock_##name(nvmlDevice_t device, type *value) \
    {                                                          \
        struct target target;                                  \
        TRY(resolve_device(device, &target));                  \
        NEED(value, INVALID_ARGUMENT);                         \
        *value = (constant);                                   \
        return NVML_SUCCESS;                                   \
    }
CONSTANT(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
CONSTANT(nvmlDeviceGetPerformanceState, nvmlPstates_t, NVML_PSTATE_0)
ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState);
CONSTANT(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);
CONSTANT(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ff)
ALIAS(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetSupportedClocksEventReasons);

nvmlReturn_t mock_nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least, unsigned int *most)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    TRY(give(target.model->power_minimum_mw, least));
    return give(target.model->power_limit_mw, most);
}

nvmlReturn_t mock_nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *value)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(sensor == NVML_TEMPERATURE_GPU, INVALID_ARGUMENT);
    return give(target.model->temperature_gpu, value);
}

nvmlReturn_t mock_nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t kind, unsigned int *value)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED((unsigned int)kind < 4, NOT_SUPPORTED);
    return give(target.model->temperature_thresholds[kind], value);
}

static nvmlReturn_t give_clock(nvmlDevice_t device, size_t offset, nvmlClockType_t type, unsigned int *value)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED((unsigned int)type < NVML_CLOCK_COUNT, INVALID_ARGUMENT);
    const uint32_t *clocks = (const uint32_t *)((const char *)target.model + offset);
    return give(clocks[type], value);
}
nvmlReturn_t mock_nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *value)
{
    return give_clock(device, offsetof(struct model, clocks_now), type, value);
}
nvmlReturn_t mock_nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *value)
{
    return give_clock(device, offsetof(struct model, clocks_maximum), type, value);
}
nvmlReturn_t mock_nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *value)
{
    return give_clock(device, offsetof(struct model, clocks_application), type, value);
}
ALIAS(nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetApplicationsClock);

nvmlReturn_t mock_nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *clocks)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(count, INVALID_ARGUMENT);
    NEED(target.model->clocks_maximum[NVML_CLOCK_MEM] != UNKNOWN, NOT_SUPPORTED);
    unsigned int room = clocks ? *count : 0;
    *count = 1;
    NEED(room >= 1, INSUFFICIENT_SIZE);
    clocks[0] = target.model->clocks_maximum[NVML_CLOCK_MEM];
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory, unsigned int *count,
                                                       unsigned int *clocks)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    const struct model *model = target.model;
    NEED(count, INVALID_ARGUMENT);
    NEED(model->clock_graphics_step != UNKNOWN, NOT_SUPPORTED);
    NEED(memory == model->clocks_maximum[NVML_CLOCK_MEM], NOT_FOUND);
    unsigned int highest = model->clocks_maximum[NVML_CLOCK_GRAPHICS], step = model->clock_graphics_step;
    unsigned int room = clocks ? *count : 0;
    *count = (highest - model->clock_graphics_minimum) / step + 1;
    NEED(room >= *count, INSUFFICIENT_SIZE);
    for (unsigned int i = 0; i < *count; i++) clocks[i] = highest - i * step;
    return NVML_SUCCESS;
}

/* Load is not known for a card in MIG mode. */
static nvmlReturn_t resolve_load(nvmlDevice_t device)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(!target.gpu->mig_current, NOT_SUPPORTED);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *load)
{
    TRY(resolve_load(device));
    NEED(load, INVALID_ARGUMENT);
    load->gpu = load->memory = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *load, unsigned int *period)
{
    TRY(resolve_load(device));
    NEED(load && period, INVALID_ARGUMENT);
    *load = 0;
    *period = 167000; /* microseconds, as on the A100 of the lab's transcripts */
    return NVML_SUCCESS;
}
ALIAS(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization);
ALIAS(nvmlDeviceGetJpgUtilization, nvmlDeviceGetEncoderUtilization);
ALIAS(nvmlDeviceGetOfaUtilization, nvmlDeviceGetEncoderUtilization);

nvmlReturn_t mock_nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions, unsigned int *fps, unsigned int *latency)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(sessions && fps && latency, INVALID_ARGUMENT);
    *sessions = *fps = *latency = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *stats)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(stats, INVALID_ARGUMENT);
    memset(stats, 0, sizeof *stats);
    return NVML_SUCCESS;
}

static nvmlReturn_t resolve_ecc(nvmlDevice_t device)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(target.model->ecc != UNKNOWN, NOT_SUPPORTED);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct target target;
    TRY(resolve_ecc(device));
    TRY(resolve_device(device, &target));
    NEED(current && pending, INVALID_ARGUMENT);
    *current = *pending = target.model->ecc;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                              unsigned long long *errors)
{
    (void)type;
    (void)counter;
    TRY(resolve_ecc(device));
    NEED(errors, INVALID_ARGUMENT);
    *errors = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                                  nvmlMemoryLocation_t location, unsigned long long *errors)
{
    (void)location;
    return mock_nvmlDeviceGetTotalEccErrors(device, type, counter, errors);
}

nvmlReturn_t mock_nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                            unsigned int *pending, unsigned int *failed)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(corrected && uncorrected && pending && failed, INVALID_ARGUMENT);
    NEED(target.model->row_remapper_banks != UNKNOWN, NOT_SUPPORTED);
    *corrected = *uncorrected = *pending = *failed = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(values, INVALID_ARGUMENT);
    NEED(target.model->row_remapper_banks != UNKNOWN, NOT_SUPPORTED);
    memset(values, 0, sizeof *values);
    values->max = target.model->row_remapper_banks;
    return NVML_SUCCESS;
}

/* Each card is near every CPU of the real host: Slurm refuses CPUs that the host has not. */
nvmlReturn_t mock_nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(set && size, INVALID_ARGUMENT);
    const unsigned int bits = 8 * sizeof *set;
    memset(set, 0, size * sizeof *set);
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (unsigned int cpu = 0; cpu < size * bits && (long)cpu < cpus; cpu++) set[cpu / bits] |= 1ul << cpu % bits;
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set, nvmlAffinityScope_t scope)
{
    struct target target;
    (void)scope;
    TRY(resolve_device(device, &target));
    NEED(set && size, INVALID_ARGUMENT);
    memset(set, 0, size * sizeof *set);
    set[0] = 1;
    return NVML_SUCCESS;
}

static nvmlReturn_t field_value(const struct model *model, unsigned int field, unsigned int *value)
{
    switch (field) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING: return give(model->ecc, value);
    case NVML_FI_DEV_MEMORY_TEMP: return give(model->temperature_memory, value);
    case NVML_FI_DEV_POWER_INSTANT: return give(model->power_draw_mw, value);
    case NVML_FI_DEV_POWER_MIN_LIMIT: return give(model->power_minimum_mw, value);
    case NVML_FI_DEV_POWER_MAX_LIMIT:
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT: return give(model->power_limit_mw, value);
    case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
        return give(model->mig_capable ? !model->mig_reset_needed : UNKNOWN, value);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* nvidia-smi 535 ignores the return value of this call, so every entry must be filled. */
nvmlReturn_t mock_nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(values && count > 0, INVALID_ARGUMENT);
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *value = &values[i];
        value->timestamp = value->latencyUsec = 0;
        value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        value->value.ullVal = 0;
        value->nvmlReturn =
            value->scopeId ? NVML_ERROR_NOT_SUPPORTED : field_value(target.model, value->fieldId, &value->value.uiVal);
    }
    return NVML_SUCCESS;
}
