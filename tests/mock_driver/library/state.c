/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The state file: found, mapped, locked around every call. The library never makes one: without it there is no driver. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATH "/var/lib/mock-driver/state"

struct state *machine;

static int file = -1;
static unsigned int initialised; /* nvmlInit calls less nvmlShutdown calls */
static unsigned int sleep_after;
static struct gpu before_lie[MAX_GPUS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *state_path(void)
{
    const char *path = getenv("MOCK_DRIVER_STATE");
    return path && *path ? path : DEFAULT_PATH;
}

static void lock_file(void)
{
    while (flock(file, LOCK_EX) != 0 && errno == EINTR)
        ;
}

/* flock belongs to the open file, and lasts as long as any descriptor or mapping of it in any process. So the lock has an
 * open file of its own, apart from the mapping, and a forked child gets its own, too: else parent and child would not
 * exclude each other, and a child that lives on would keep the lock of a parent that was killed. */
static int open_again(int descriptor)
{
    char same[32];
    snprintf(same, sizeof same, "/proc/self/fd/%d", descriptor);
    return open(same, O_RDWR | O_CLOEXEC);
}

static void before_fork(void) { pthread_mutex_lock(&mutex); }
static void after_fork_parent(void) { pthread_mutex_unlock(&mutex); }
static void after_fork_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    if (file < 0) return;
    int own = open_again(file);
    close(file);
    file = own;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void unmap(void)
{
    if (machine) munmap(machine, sizeof *machine);
    if (file >= 0) close(file);
    machine = NULL;
    file = -1;
}

static bool fits(const struct state *state)
{
    return memcmp(state->magic, MAGIC, sizeof state->magic) == 0 && state->layout == LAYOUT_SIGNATURE;
}

static nvmlReturn_t map(void)
{
    struct stat status;
    void *memory = MAP_FAILED;
    int mapped = open(state_path(), O_RDWR | O_CLOEXEC);
    NEED(mapped >= 0, DRIVER_NOT_LOADED);
    if (fstat(mapped, &status) == 0 && status.st_size == sizeof(struct state))
        memory = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
    if (memory != MAP_FAILED) {
        machine = memory;
        file = open_again(mapped);
    }
    close(mapped);
    if (machine && file >= 0 && fits(machine)) return NVML_SUCCESS;
    unmap();
    return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}

/* The calls that nvml.h allows without initialisation. */
static bool needs_no_init(enum function function)
{
    return function == F_nvmlInit || function == F_nvmlInit_v2 || function == F_nvmlInitWithFlags ||
           function == F_nvmlSystemGetNVMLVersion;
}

nvmlReturn_t library_open(void)
{
    NEED(machine->up, DRIVER_NOT_LOADED);
    if (machine->init_result != NVML_SUCCESS) return machine->init_result;
    initialised++;
    return NVML_SUCCESS;
}

nvmlReturn_t library_close(void)
{
    initialised--;
    return NVML_SUCCESS;
}

/* A fault's target is a function, or without a version all versions of it: which one is called is the client's choice. */
static bool aims_at(const struct fault *fault, const char *function)
{
    size_t length = strlen(fault->target);
    return fault->used && strncmp(function, fault->target, length) == 0 &&
           (function[length] == '\0' || strncmp(function + length, "_v", 2) == 0);
}

/* The code of the fault that meets this call, or -1. Every call is counted, for faults from or only at a certain one. */
static int fault_code(const char *function, uint32_t gpu)
{
    int code = -1;
    for (unsigned int i = 0; i < MAX_FAULTS; i++) {
        struct fault *fault = &machine->faults[i];
        if (!aims_at(fault, function)) continue;
        if (fault->gpu != ANY && fault->gpu != gpu) continue;
        fault->seen++;
        if (fault->seen >= fault->first && fault->seen <= fault->last) code = (int)fault->code;
    }
    return code;
}

static void hang(void)
{
    flock(file, LOCK_UN);
    for (;;) pause();
}

bool call_begin(struct call *call, uint32_t gpu)
{
    pthread_mutex_lock(&mutex);
    sleep_after = 0;
    call->gpu = gpu;
    call->result = NVML_ERROR_UNINITIALIZED;
    if (!initialised) {
        if (!needs_no_init(call->function)) return false;
        /* A machine that went down and came up again is another file under the same name. */
        unmap();
        call->result = map();
        if (call->result != NVML_SUCCESS) return false;
    }
    call->mapped = true;
    lock_file();
    call->changes_before = machine->changes;
    if (!machine->up && call->function != F_nvmlShutdown) {
        call->result = NVML_ERROR_DRIVER_NOT_LOADED;
        return false;
    }
    int code = fault_code(function_names[call->function], gpu);
    if (code < 0) return true;
    if (code == FAULT_HANG) hang();
    if (code == FAULT_LIE) {
        /* The call runs and answers as ever, but what it changed is put back. */
        call->lies = true;
        memcpy(before_lie, machine->gpus, sizeof before_lie);
        return true;
    }
    call->result = (nvmlReturn_t)code;
    return false;
}

static void record(const struct call *call)
{
    struct function_count *count = &machine->functions[call->function];
    count->calls++;
    count->failed += call->result != NVML_SUCCESS;
    count->changes += machine->changes != call->changes_before;
    if (!machine->tracing) return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    machine->trace[machine->trace_count++ % MAX_TRACE] = (struct trace_entry){
        .time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
        .pid = (uint32_t)getpid(),
        .function = call->function,
        .gpu = call->gpu,
        .result = (int32_t)call->result,
    };
}

nvmlReturn_t call_end(struct call *call)
{
    if (call->lies) {
        memcpy(machine->gpus, before_lie, sizeof before_lie);
        machine->changes = call->changes_before;
    }
    if (call->mapped) {
        record(call);
        flock(file, LOCK_UN);
    }
    if (!initialised) unmap();
    unsigned int milliseconds = sleep_after;
    pthread_mutex_unlock(&mutex);
    if (milliseconds) usleep(milliseconds * 1000u);
    return call->result;
}

void call_sleep(unsigned int milliseconds) { sleep_after = milliseconds; }

void machine_changed(void) { machine->changes++; }

/* Root, and who brought the machine up: so that the demo needs no root. */
bool may_change(void)
{
    const char *pretended = getenv("MOCK_DRIVER_UID");
    uid_t uid = pretended && *pretended ? (uid_t)strtoul(pretended, NULL, 10) : geteuid();
    return uid == 0 || uid == machine->owner_uid;
}

nvmlReturn_t copy_text(char *to, unsigned int size, const char *text)
{
    NEED(to, INVALID_ARGUMENT);
    NEED(strlen(text) < size, INSUFFICIENT_SIZE);
    strcpy(to, text);
    return NVML_SUCCESS;
}
