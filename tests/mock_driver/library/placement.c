/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * Where a GPU instance may go, and where the driver puts it when nobody says. */
#include "placement.h"

const struct profile *profile_by_enumerator(const struct model *model, unsigned int enumerator)
{
    for (unsigned int i = 0; i < model->profile_count; i++)
        if (model->profiles[i].enumerator == enumerator) return &model->profiles[i];
    return NULL;
}

const struct profile *profile_by_id(const struct model *model, unsigned int id)
{
    for (unsigned int i = 0; i < model->profile_count; i++)
        if (model->profiles[i].id == id) return &model->profiles[i];
    return NULL;
}

/* What the instances of a card hold; room is found by adding one more. */
struct occupied {
    const struct model *model;
    uint32_t slices; /* a bit for each memory slice */
    unsigned int of_profile[MAX_PROFILES];
    unsigned int decoders, encoders, jpegs, ofas;
};

static uint32_t slices(const struct profile *profile, uint32_t start) { return ((1u << profile->memory_slices) - 1) << start; }

static void occupy(struct occupied *occupied, const struct profile *profile, uint32_t start)
{
    occupied->slices |= slices(profile, start);
    occupied->of_profile[profile - occupied->model->profiles]++;
    occupied->decoders += profile->decoders;
    occupied->encoders += profile->encoders;
    occupied->jpegs += profile->jpegs;
    occupied->ofas += profile->ofas;
}

static struct occupied occupied_by(const struct gpu *gpu)
{
    struct occupied occupied = {.model = &machine->models[gpu->model]};
    for (unsigned int i = 0; i < MAX_GPU_INSTANCES; i++) {
        const struct gpu_instance *instance = &gpu->gpu_instances[i];
        if (instance->used) occupy(&occupied, &occupied.model->profiles[instance->profile], instance->start);
    }
    return occupied;
}

/* A model whose media engines are not counted has UNKNOWN many: no limit. */
static bool has_engines(const struct occupied *occupied, const struct profile *profile)
{
    const struct model *model = occupied->model;
    return occupied->decoders + profile->decoders <= model->mig_decoders &&
           occupied->encoders + profile->encoders <= model->mig_encoders &&
           occupied->jpegs + profile->jpegs <= model->mig_jpegs && occupied->ofas + profile->ofas <= model->mig_ofas;
}

static bool allowed(const struct occupied *occupied, const struct profile *profile)
{
    return occupied->of_profile[profile - occupied->model->profiles] < profile->max_instances &&
           has_engines(occupied, profile);
}

static unsigned int free_places(const struct occupied *occupied, const struct profile *profile)
{
    unsigned int count = 0;
    if (!allowed(occupied, profile)) return 0;
    for (unsigned int i = 0; i < profile->placement_count; i++)
        count += !(occupied->slices & slices(profile, profile->placements[i].start));
    return count;
}

bool gpu_instance_fits(const struct gpu *gpu, const struct profile *profile, const struct placement *place)
{
    struct occupied occupied = occupied_by(gpu);
    return allowed(&occupied, profile) && !(occupied.slices & slices(profile, place->start));
}

unsigned int gpu_instance_capacity(const struct gpu *gpu, const struct profile *profile)
{
    struct occupied occupied = occupied_by(gpu);
    unsigned int count = 0;
    for (unsigned int i = 0; i < profile->placement_count && allowed(&occupied, profile); i++) {
        uint32_t start = profile->placements[i].start;
        if (occupied.slices & slices(profile, start)) continue;
        occupy(&occupied, profile, start);
        count++;
    }
    return count;
}

/* Inferred: the place after which the most instances of any profile could still be made at some place, and of several such
 * places the first. It gives what NVIDIA's MIG User Guide and published listings of real boards show. */
const struct placement *gpu_instance_choice(const struct gpu *gpu, const struct profile *profile)
{
    const struct occupied now = occupied_by(gpu);
    const struct placement *best = NULL;
    unsigned int most = 0;
    if (!allowed(&now, profile)) return NULL;
    for (unsigned int i = 0; i < profile->placement_count; i++) {
        const struct placement *place = &profile->placements[i];
        if (now.slices & slices(profile, place->start)) continue;
        struct occupied then = now;
        occupy(&then, profile, place->start);
        unsigned int left = 0;
        for (unsigned int other = 0; other < now.model->profile_count; other++)
            left += free_places(&then, &now.model->profiles[other]);
        if (best && left <= most) continue;
        best = place;
        most = left;
    }
    return best;
}
