/* Copyright (c) 2026 gpuops.sharing contributors
 * GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
 *
 * What a device is: its names, numbers and place on the PCI bus. */
#include "handles.h"
#include "mig.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t mock_nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    struct target target;
    TRY(resolve_device(device, &target));
    if (target.kind == KIND_GPU) return copy_text(name, length, target.model->name);
    char instance[64], text[sizeof target.model->name + sizeof instance];
    mig_device_name(&target, instance, sizeof instance);
    snprintf(text, sizeof text, "%s %s", target.model->name, instance);
    return copy_text(name, length, text);
}

nvmlReturn_t mock_nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct target target;
    TRY(resolve_device(device, &target));
    return copy_text(uuid, length, target.kind == KIND_GPU ? target.gpu->uuid : target.ci->uuid);
}

nvmlReturn_t mock_nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(index, INVALID_ARGUMENT);
    struct mig_device place = {target.gpu_instance, target.compute_instance};
    *index = target.kind == KIND_GPU ? target.index : mig_device_index(target.gpu, &place);
    return NVML_SUCCESS;
}

static void describe_pci(const struct target *target, nvmlPciInfo_t *pci)
{
    const struct gpu *gpu = target->gpu;
    memset(pci, 0, sizeof *pci);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = target->model->pci_device_id;
    pci->pciSubSystemId = target->model->pci_subsystem_id == UNKNOWN ? 0 : target->model->pci_subsystem_id;
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", gpu->pci_domain & 0xffffu,
             gpu->pci_bus & 0xffu, gpu->pci_device & 0xffu);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", gpu->pci_domain, gpu->pci_bus & 0xffu,
             gpu->pci_device & 0xffu);
}

/* Older versions of the structure are the first part of today's. */
static nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci, size_t size)
{
    struct target target;
    nvmlPciInfo_t whole;
    TRY(resolve_device(device, &target));
    NEED(pci, INVALID_ARGUMENT);
    describe_pci(&target, &whole);
    memcpy(pci, &whole, size);
    return NVML_SUCCESS;
}

nvmlReturn_t mock_nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(device, pci, sizeof *pci);
}
nvmlReturn_t mock_nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(device, pci, offsetof(nvmlPciInfo_t, busId));
}
nvmlReturn_t mock_nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return pci_info(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t mock_nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    struct target target;
    nvmlPciInfo_t info;
    TRY(resolve_device(device, &target));
    NEED(pci, INVALID_ARGUMENT);
    NEED(pci->version == nvmlPciInfoExt_v1, ARGUMENT_VERSION_MISMATCH);
    describe_pci(&target, &info);
    pci->domain = info.domain;
    pci->bus = info.bus;
    pci->device = info.device;
    pci->pciDeviceId = info.pciDeviceId;
    pci->pciSubSystemId = info.pciSubSystemId;
    pci->baseClass = 3; /* display controller */
    pci->subClass = 2;  /* 3D controller */
    memcpy(pci->busId, info.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

/* A text that the model may lack. */
static nvmlReturn_t model_text(nvmlDevice_t device, size_t offset, char *text, unsigned int length)
{
    struct target target;
    TRY(resolve_device(device, &target));
    const char *known = (const char *)target.model + offset;
    NEED(*known, NOT_SUPPORTED);
    return copy_text(text, length, known);
}

nvmlReturn_t mock_nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(*target.gpu->serial, NOT_SUPPORTED);
    return copy_text(serial, length, target.gpu->serial);
}
nvmlReturn_t mock_nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return model_text(device, offsetof(struct model, vbios), version, length);
}
nvmlReturn_t mock_nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *number, unsigned int length)
{
    return model_text(device, offsetof(struct model, part_number), number, length);
}
nvmlReturn_t mock_nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return model_text(device, offsetof(struct model, inforom_image), version, length);
}
nvmlReturn_t mock_nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object, char *version,
                                              unsigned int length)
{
    NEED(object == NVML_INFOROM_OEM || object == NVML_INFOROM_ECC, NOT_SUPPORTED);
    size_t offset = object == NVML_INFOROM_OEM ? offsetof(struct model, inforom_oem) : offsetof(struct model, inforom_ecc);
    return model_text(device, offset, version, length);
}

nvmlReturn_t mock_nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled, unsigned int *standard)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(enabled && standard, INVALID_ARGUMENT);
    NEED(target.model->gsp_firmware != UNKNOWN, NOT_SUPPORTED);
    *enabled = *standard = target.model->gsp_firmware;
    return NVML_SUCCESS;
}

/* The firmware comes with the driver and has its version. */
nvmlReturn_t mock_nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    struct target target;
    TRY(resolve_gpu(device, &target));
    NEED(target.model->gsp_firmware != UNKNOWN, NOT_SUPPORTED);
    return copy_text(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE, machine->driver_version);
}

nvmlReturn_t mock_nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct target target;
    TRY(resolve_device(device, &target));
    NEED(major && minor, INVALID_ARGUMENT);
    *major = (int)target.model->capability_major;
    *minor = (int)target.model->capability_minor;
    return NVML_SUCCESS;
}

#define NUMBER(name, type, expression)                       \
    nvmlReturn_t mock_##name(nvmlDevice_t device, type *value) \
    {                                                        \
        struct target target;                                \
        TRY(resolve_device(device, &target));                \
        NEED(value, INVALID_ARGUMENT);                       \
        uint32_t number = (uint32_t)(expression);            \
        NEED(number != UNKNOWN, NOT_SUPPORTED);              \
        *value = (type)number;                               \
        return NVML_SUCCESS;                                 \
    }

NUMBER(nvmlDeviceGetMinorNumber, unsigned int, target.gpu->minor)
NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t, target.model->brand)
NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, target.model->architecture)
NUMBER(nvmlDeviceGetBoardId, unsigned int, target.gpu->pci_bus << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
NUMBER(nvmlDeviceGetModuleId, unsigned int, target.index)
NUMBER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, target.model->display_mode)
NUMBER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, target.model->pcie_generation)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, target.model->pcie_generation)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, target.model->pcie_generation)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, target.model->pcie_width)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, target.model->pcie_width)
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)

nvmlReturn_t mock_nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level)
{
    struct target target;
    TRY(resolve_gpu(one, &target));
    TRY(resolve_gpu(other, &target));
    NEED(level, INVALID_ARGUMENT);
    *level = one == other ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
    return NVML_SUCCESS;
}
