package main

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// layoutOf reads a configuration of mig-parted: what each GPU is cut into.
func layoutOf(text []byte, name string, gpus int) ([]string, error) {
	var file struct {
		Version    string
		MigConfigs map[string][]struct {
			Devices    any
			MigEnabled bool           `json:"mig-enabled"`
			MigDevices map[string]int `json:"mig-devices"`
		} `json:"mig-configs"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%w, in %s", err, text)
	}
	entries, found := file.MigConfigs[name]
	if !found {
		return nil, fmt.Errorf("expected a configuration %s, found %s", name, text)
	}
	layout := make([]string, gpus)
	for _, entry := range entries {
		cut := "whole"
		if entry.MigEnabled {
			cut = fmt.Sprint(entry.MigDevices)
		}
		indexes, err := indexesOf(entry.Devices, gpus)
		if err != nil {
			return nil, err
		}
		for _, index := range indexes {
			layout[index] = cut
		}
	}
	return layout, nil
}

// "all", or a list of numbers.
func indexesOf(devices any, gpus int) ([]int, error) {
	var indexes []int
	if devices == "all" {
		for i := range gpus {
			indexes = append(indexes, i)
		}
		return indexes, nil
	}
	list, ok := devices.([]any)
	for _, one := range list {
		number, isNumber := one.(float64)
		ok = ok && isNumber && number >= 0 && int(number) < gpus
		indexes = append(indexes, int(number))
	}
	if !ok {
		return nil, fmt.Errorf("expected all or numbers of %d GPUs, found %v", gpus, devices)
	}
	return indexes, nil
}

// startDifferences: where Tranche shows instances elsewhere than they are. GPUs are taken in any
// order, since a node of the stock plugin does not tell which is which.
func (s *State) startDifferences(seen *SeenNode) []Difference {
	var expected, found []string
	for _, gpu := range s.Machine.Gpus {
		var cards []string
		for _, mig := range gpu.Migs {
			cards = append(cards, fmt.Sprintf("%s@%d", mig.Profile, mig.Start))
		}
		slices.Sort(cards)
		expected = append(expected, fmt.Sprint(cards))
	}
	for _, card := range seen.Gpus {
		var cards []string
		for _, mig := range card.Mig {
			cards = append(cards, fmt.Sprintf("%s@%d", mig.Profile, mig.Start))
		}
		slices.Sort(cards)
		found = append(found, fmt.Sprint(cards))
	}
	slices.Sort(expected)
	slices.Sort(found)
	if slices.Equal(expected, found) {
		return nil
	}
	return []Difference{{"starts", fmt.Sprint(expected), fmt.Sprint(found)}}
}
