/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * The machine's state as the library sees it, and what surrounds every NVML call: the lock, the counters, the faults.
 * mock_* functions run under the lock and may call each other. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include NVML_H
#include "layout.h"
#include "functions.h"

struct call {
    enum function function;
    uint32_t gpu;
    nvmlReturn_t result;
    uint64_t changes_before;
    bool mapped, lies;
};

extern struct state *machine;
extern const char *const function_names[FUNCTION_COUNT];

/* true: go on to the implementation; false: call->result is the answer. Takes the lock either way. */
bool call_begin(struct call *call, uint32_t gpu);
nvmlReturn_t call_end(struct call *call);
/* The running call shall answer only after so many milliseconds, with the lock given back. */
void call_sleep(unsigned int milliseconds);

nvmlReturn_t library_open(void);
nvmlReturn_t library_close(void);

/* To be called by whatever changes the machine. */
void machine_changed(void);
bool may_change(void);

#define NEED(condition, code)                  \
    do {                                       \
        if (!(condition)) return NVML_ERROR_##code; \
    } while (0)
#define TRY(call)                                    \
    do {                                             \
        nvmlReturn_t result_ = (call);               \
        if (result_ != NVML_SUCCESS) return result_; \
    } while (0)
/* `name` is another name of `target`, which the same file defines. */
#define ALIAS(name, target) __typeof__(mock_##name) mock_##name __attribute__((alias("mock_" #target)))

nvmlReturn_t copy_text(char *to, unsigned int size, const char *text);

#endif
