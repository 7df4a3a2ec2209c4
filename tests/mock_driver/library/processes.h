/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt) */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "handles.h"

enum list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS };

/* The next living process of the list on the device, from entry *at on; NULL after the last. */
const struct process *process_next(const struct target *target, enum list list, unsigned int *at);
/* Whether any living process is on the card or instance. */
bool process_on(const struct target *target);
bool process_list_allowed(const struct target *target);
uint64_t process_memory(const struct target *target);

#endif
