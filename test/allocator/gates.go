package main

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/features"
)

// The allocator's features as kube-scheduler sets them by its gates, which nobody has changed.
func defaultFeatures() structured.Features {
	on := func(gate featuregate.Feature) bool {
		return utilfeature.DefaultFeatureGate.Enabled(gate)
	}
	return structured.Features{
		AdminAccess:         on(features.DRAAdminAccess),
		CompatibilityGroups: on(features.DRADeviceCompatibilityGroups),
		ConsumableCapacity:  on(features.DRAConsumableCapacity),
		DerivedAttributes:   on(features.DRADerivedAttributes),
		DeviceBindingAndStatus: on(features.DRADeviceBindingConditions) &&
			on(features.DRAResourceClaimDeviceStatus),
		DeviceTaints:            on(features.DRADeviceTaints),
		FractionalCapacityRange: on(features.DRAFractionalCapacityRange),
		ListTypeAttributes:      on(features.DRAListTypeAttributes),
		OptionalNodeOperations:  on(features.DRAOptionalNodeOperations),
		PartitionableDevices:    on(features.DRAPartitionableDevices),
		PrioritizedList:         on(features.DRAPrioritizedList),
	}
}

func celFeatures(of structured.Features) cel.Features {
	return cel.Features{
		EnableConsumableCapacity: of.ConsumableCapacity,
		EnableListTypeAttributes: of.ListTypeAttributes,
	}
}
