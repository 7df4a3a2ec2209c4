/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The library and the host: initialisation, error texts, versions, names of processes. */
#include "state.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t mock_nvmlInit_v2(void) { return library_open(); }
ALIAS(nvmlInit, nvmlInit_v2);
nvmlReturn_t mock_nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return library_open();
}
nvmlReturn_t mock_nvmlShutdown(void) { return library_close(); }

/* Not NVIDIA's: by this a program makes sure that no real driver will hear it. */
const char *mockDriverVersion(void);
const char *mockDriverVersion(void) { return "gpuops.sharing mock driver"; }

const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
        [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
        [NVML_ERROR_OPERATING_SYSTEM] = "GPU access blocked by the operating system",
        [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
        [NVML_ERROR_IN_USE] = "In use by another client",
        [NVML_ERROR_MEMORY] = "Insufficient Memory",
        [NVML_ERROR_NO_DATA] = "No data",
        [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "vGPU ECC not supported",
        [NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
        [NVML_ERROR_FREQ_NOT_SUPPORTED] = "Invalid Frequency",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
        [NVML_ERROR_DEPRECATED] = "Requested functionality has been deprecated",
        [NVML_ERROR_NOT_READY] = "System is not in ready state",
    };
    return (size_t)result < sizeof texts / sizeof *texts ? texts[result] : "Unknown Error";
}

nvmlReturn_t mock_nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    return copy_text(version, length, machine->driver_version);
}

nvmlReturn_t mock_nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return copy_text(version, length, machine->nvml_version);
}

nvmlReturn_t mock_nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    NEED(version, INVALID_ARGUMENT);
    *version = (int)machine->cuda_version;
    return NVML_SUCCESS;
}
ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

nvmlReturn_t mock_nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[64], text[256] = "";
    NEED(name && length, INVALID_ARGUMENT);
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *command = fopen(path, "re");
    NEED(command, NOT_FOUND);
    size_t size = fread(text, 1, sizeof text - 1, command);
    fclose(command);
    NEED(size, NOT_FOUND);
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlUnitGetCount(unsigned int *count)
{
    NEED(count, INVALID_ARGUMENT);
    *count = 0;
    return NVML_SUCCESS;
}
