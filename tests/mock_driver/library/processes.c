/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Processes on a device. An entry counts only while its process lives, as a driver cleans up after the dead. */
#include "processes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static bool is_zombie(uint32_t pid)
{
    char path[32], state = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *status = fopen(path, "re");
    if (!status) return false;
    /* "PID (name) S ...": the name may hold anything, so look behind its last bracket. */
    char text[512] = "";
    size_t size = fread(text, 1, sizeof text - 1, status);
    fclose(status);
    const char *end = size ? strrchr(text, ')') : NULL;
    if (end && end[1] == ' ') state = end[2];
    return state == 'Z' || state == 'X';
}

static bool alive(uint32_t pid)
{
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return false;
    return !is_zombie(pid);
}

static bool listed(const struct process *process, enum list list)
{
    switch (process->kind) {
    case PROCESS_GRAPHICS: return list == LIST_GRAPHICS;
    /* In both: nvidia-smi marks M+C what it finds in the compute list and in the MPS list, and shows nothing of what is
     * in the MPS list alone. The server is an ordinary compute process. */
    case PROCESS_MPS_CLIENT: return list != LIST_GRAPHICS;
    default: return list == LIST_COMPUTE;
    }
}

/* Also for a GPU or compute instance. */
static bool on_device(const struct process *process, const struct target *target)
{
    if (target->kind == KIND_GPU) return true;
    return process->gpu_instance == target->gpu_instance &&
           (target->kind == KIND_GPU_INSTANCE || process->compute_instance == target->compute_instance);
}

const struct process *process_next(const struct target *target, enum list list, unsigned int *at)
{
    for (; *at < MAX_PROCESSES; ++*at) {
        const struct process *process = &target->gpu->processes[*at];
        if (process->pid && listed(process, list) && on_device(process, target) && alive(process->pid)) {
            ++*at;
            return process;
        }
    }
    return NULL;
}

bool process_on(const struct target *target)
{
    for (unsigned int i = 0; i < MAX_PROCESSES; i++) {
        const struct process *process = &target->gpu->processes[i];
        if (process->pid && on_device(process, target) && alive(process->pid)) return true;
    }
    return false;
}

uint64_t process_memory(const struct target *target)
{
    uint64_t memory = 0;
    for (enum list list = LIST_COMPUTE; list <= LIST_GRAPHICS; list++) {
        const struct process *process;
        for (unsigned int at = 0; (process = process_next(target, list, &at));) memory += process->memory;
    }
    return memory;
}

/* Who is on a card in MIG mode is told to privileged users only; who is in one MIG device to all (nvml.h). */
bool process_list_allowed(const struct target *target)
{
    return target->kind == KIND_MIG_DEVICE || !target->gpu->mig_current || may_change();
}

/* The first version of the structure has no instance ids; versions 2 and 3 of the calls share one that has. */
static nvmlReturn_t processes(nvmlDevice_t device, enum list list, unsigned int *count, void *infos, bool with_instances)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(count, INVALID_ARGUMENT);
    NEED(process_list_allowed(&target), NO_PERMISSION);
    unsigned int room = infos ? *count : 0, total = 0;
    const struct process *process;
    for (unsigned int at = 0; (process = process_next(&target, list, &at)); total++) {
        if (total >= room) continue;
        if (with_instances)
            ((nvmlProcessInfo_v2_t *)infos)[total] = (nvmlProcessInfo_v2_t){
                .pid = process->pid,
                .usedGpuMemory = process->memory,
                .gpuInstanceId = process->gpu_instance,
                .computeInstanceId = process->compute_instance,
            };
        else
            ((nvmlProcessInfo_v1_t *)infos)[total] =
                (nvmlProcessInfo_v1_t){.pid = process->pid, .usedGpuMemory = process->memory};
    }
    *count = total;
    NEED(total <= room, INSUFFICIENT_SIZE);
    return NVML_SUCCESS;
}

#define PROCESSES(name, list)                                                                                   \
    nvmlReturn_t mock_##name(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)             \
    {                                                                                                           \
        return processes(device, list, count, infos, false);                                                    \
    }                                                                                                           \
    nvmlReturn_t mock_##name##_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos)        \
    {                                                                                                           \
        return processes(device, list, count, infos, true);                                                     \
    }                                                                                                           \
    ALIAS(name##_v3, name##_v2);

PROCESSES(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS)
