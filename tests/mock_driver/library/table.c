/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The internal table that nvidia-smi asks for. Only the entries that NVIDIA publishes in its own nvml-mock
 * (k8s-test-infra, Apache-2.0) do something: processes and the PCIe generation. Every other answers NOT_SUPPORTED, and
 * nvidia-smi falls back to the public calls; it loses the selection of a card by its PCI address. */
#include "processes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES = 512 };

struct table_process {
    uint32_t pid;
    uint32_t reserved;
    uint64_t memory;
    uint32_t gpu_instance, compute_instance;
    uint64_t reserved2;
    char name[4096];
};
_Static_assert(sizeof(struct table_process) == 4128, "published size of an entry");

static nvmlReturn_t not_supported(void) { return NVML_ERROR_NOT_SUPPORTED; }

static nvmlReturn_t list_processes(nvmlDevice_t device, enum list list, unsigned int *count, struct table_process *out)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(count && out, INVALID_ARGUMENT);
    NEED(process_list_allowed(&target), NO_PERMISSION);
    unsigned int total = 0;
    const struct process *process;
    for (unsigned int at = 0; total < *count && (process = process_next(&target, list, &at)); total++) {
        out[total] = (struct table_process){
            .pid = process->pid,
            .memory = process->memory,
            .gpu_instance = process->gpu_instance,
            .compute_instance = process->compute_instance,
        };
        if (mock_nvmlSystemGetProcessName(process->pid, out[total].name, sizeof out[total].name) != NVML_SUCCESS)
            strcpy(out[total].name, "[Not Found]");
    }
    *count = total;
    return NVML_SUCCESS;
}

/* Table entries are no NVML functions: they are counted as the public function that does the same. */
#define LIST(name, list, counted)                                                                            \
    static nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, struct table_process *out)            \
    {                                                                                                        \
        struct call call = {.function = F_##counted};                                                        \
        if (call_begin(&call, handle_gpu(device))) call.result = list_processes(device, list, count, out);   \
        return call_end(&call);                                                                              \
    }
LIST(list_compute, LIST_COMPUTE, nvmlDeviceGetComputeRunningProcesses_v3)
LIST(list_graphics, LIST_GRAPHICS, nvmlDeviceGetGraphicsRunningProcesses_v3)
LIST(list_mps, LIST_MPS, nvmlDeviceGetMPSComputeRunningProcesses_v3)

static nvmlReturn_t pcie_generation(nvmlDevice_t device, unsigned int *generation)
{
    return nvmlDeviceGetMaxPcieLinkGeneration(device, generation);
}

nvmlReturn_t nvmlInternalGetExportTable(const void **table, const unsigned char *guid);
nvmlReturn_t nvmlInternalGetExportTable(const void **table, const unsigned char *guid)
{
    static const unsigned char known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    static const void *entries[ENTRIES];
    NEED(table && guid && memcmp(guid, known, sizeof known) == 0, NOT_FOUND);
    entries[0] = (const void *)sizeof entries;
    for (unsigned int i = 1; i < ENTRIES; i++) entries[i] = (const void *)not_supported;
    /* Which list is which was seen in the process table that nvidia-smi 535 prints. */
    entries[213] = (const void *)list_compute;
    entries[214] = (const void *)list_mps;
    entries[215] = (const void *)list_graphics;
    entries[230] = (const void *)pcie_generation;
    *table = entries;
    return NVML_SUCCESS;
}
