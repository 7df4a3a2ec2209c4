/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt) */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include "handles.h"

/* NULL where the model has no such profile. */
const struct profile *profile_by_enumerator(const struct model *model, unsigned int enumerator);
const struct profile *profile_by_id(const struct model *model, unsigned int id);

/* How many more instances of the profile the card has room for. */
unsigned int gpu_instance_capacity(const struct gpu *gpu, const struct profile *profile);
/* The place of the profile where the driver would put the next instance; NULL where there is no room. */
const struct placement *gpu_instance_choice(const struct gpu *gpu, const struct profile *profile);
/* Whether an instance of the profile can be made at that place. */
bool gpu_instance_fits(const struct gpu *gpu, const struct profile *profile, const struct placement *place);

#endif
