package main

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"
	"k8s.io/kubernetes/pkg/apis/resource/validation"
)

// setDefaults fills in what the API server does.
func setDefaults(line *Line) {
	for i := range line.Slices {
		resourcev1.SetObjectDefaults_ResourceSlice(&line.Slices[i])
	}
	for _, claims := range [][]resourceapi.ResourceClaim{line.Held, line.Claims} {
		for i := range claims {
			resourcev1.SetObjectDefaults_ResourceClaim(&claims[i])
		}
	}
}

// checkObjects says what the API server would refuse of a state.
func checkObjects(line *Line) error {
	for i := range line.Slices {
		var slice resource.ResourceSlice
		if err := resourcev1.Convert_v1_ResourceSlice_To_resource_ResourceSlice(
			&line.Slices[i], &slice, nil); err != nil {
			return err
		}
		if err := refusal("slice", slice.Name, validation.ValidateResourceSlice(&slice)); err != nil {
			return err
		}
	}
	for i := range line.Classes {
		var class resource.DeviceClass
		if err := resourcev1.Convert_v1_DeviceClass_To_resource_DeviceClass(
			&line.Classes[i], &class, nil); err != nil {
			return err
		}
		if err := refusal("class", class.Name, validation.ValidateDeviceClass(&class)); err != nil {
			return err
		}
	}
	if err := checkRules(line.Rules); err != nil {
		return err
	}
	for _, claims := range [][]resourceapi.ResourceClaim{line.Held, line.Claims} {
		for i := range claims {
			var claim resource.ResourceClaim
			if err := resourcev1.Convert_v1_ResourceClaim_To_resource_ResourceClaim(
				&claims[i], &claim, nil); err != nil {
				return err
			}
			if err := refusal("claim", claim.Name, validation.ValidateResourceClaim(&claim)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRules says what the API server would refuse of a state's taint rules.
func checkRules(rules []resourceapi.DeviceTaintRule) error {
	for i := range rules {
		var rule resource.DeviceTaintRule
		if err := resourcev1.Convert_v1_DeviceTaintRule_To_resource_DeviceTaintRule(
			&rules[i], &rule, nil); err != nil {
			return err
		}
		if err := refusal("rule", rule.Name, validation.ValidateDeviceTaintRule(&rule)); err != nil {
			return err
		}
	}
	return nil
}

func refusal(kind, name string, errors field.ErrorList) error {
	if len(errors) == 0 {
		return nil
	}
	return fmt.Errorf("the API server would refuse %s %s: %w", kind, name, errors.ToAggregate())
}
