/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt) */
#ifndef MIG_H
#define MIG_H

#include "handles.h"

#define MIG_UUID_SIZE sizeof(((struct compute_instance *)0)->uuid)

/* A place where a MIG device may be; devices are numbered in the order of these. */
struct mig_device {
    unsigned int gpu_instance, compute_instance;
};

/* The first MIG device of the card at `place` or after it. */
bool mig_device_next(const struct gpu *gpu, struct mig_device *place);
/* Of a compute instance that begins at that compute slice of the GPU instance. */
void mig_device_uuid(const struct gpu *gpu, unsigned int gpu_instance, unsigned int start, char text[MIG_UUID_SIZE]);
unsigned int mig_device_index(const struct gpu *gpu, const struct mig_device *place);
/* "MIG 1c.3g.20gb"; without the "1c." where the compute instance fills its GPU instance. */
void mig_device_name(const struct target *target, char *text, size_t size);

#endif
