/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Handles: what NVML's opaque pointers stand for. */
#ifndef HANDLES_H
#define HANDLES_H

#include "state.h"

enum kind { KIND_GPU, KIND_MIG_DEVICE, KIND_GPU_INSTANCE, KIND_COMPUTE_INSTANCE, KIND_COUNT };

struct target {
    enum kind kind;
    unsigned int index; /* of the card */
    unsigned int gpu_instance, compute_instance, generation;
    struct gpu *gpu;
    const struct model *model;
    struct gpu_instance *gi;      /* for all kinds but KIND_GPU */
    const struct profile *profile;
    struct compute_instance *ci;  /* for MIG devices and compute instances */
    const struct compute_profile *compute_profile;
};

void *gpu_handle(unsigned int index);
void *instance_handle(enum kind kind, unsigned int index, unsigned int gpu_instance, unsigned int compute_instance);

/* INVALID_ARGUMENT for what is no such handle or an instance that is gone, NOT_FOUND for a MIG device that is gone (assumed;
 * nvml.h names only the former), GPU_IS_LOST for a lost card. Any device, a whole card, or an instance: */
nvmlReturn_t resolve_device(nvmlDevice_t device, struct target *target);
nvmlReturn_t resolve_gpu(nvmlDevice_t device, struct target *target);
nvmlReturn_t resolve_mig_device(nvmlDevice_t device, struct target *target);
nvmlReturn_t resolve_gpu_instance(nvmlGpuInstance_t instance, struct target *target);
nvmlReturn_t resolve_compute_instance(nvmlComputeInstance_t instance, struct target *target);
/* The same for a card that has to be in MIG mode: else NOT_SUPPORTED. */
nvmlReturn_t resolve_mig_gpu(nvmlDevice_t device, struct target *target);

/* The card's number for the trace and for faults of one card, or ANY. */
uint32_t handle_gpu(const void *handle);

#endif
