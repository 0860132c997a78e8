package main

import (
	"fmt"
	"path"
	"strings"
)

// How the plugin tells a container's runtime of devices, by its own words.
const (
	byEnvironment = "envvar"
	byMounts      = "volume-mounts"
	byAnnotations = "cdi-annotations"
)

// visible are the devices of which the plugin's answer tells the runtime.
func (c *containerCase) visible() []string {
	answer := c.given.Answer
	var found []string
	switch c.state.Config.Lists {
	case byMounts:
		for _, mount := range answer.Mounts {
			if path.Dir(mount.ContainerPath) == answer.Envs["NVIDIA_VISIBLE_DEVICES"] {
				found = append(found, path.Base(mount.ContainerPath))
			}
		}
	case byAnnotations:
		for _, value := range answer.Annotations {
			for device := range strings.SplitSeq(value, ",") {
				_, name, _ := strings.Cut(device, "nvidia.com/gpu=")
				found = append(found, name)
			}
		}
	default:
		found = strings.Split(answer.Envs["NVIDIA_VISIBLE_DEVICES"], ",")
	}
	return found
}

// nameOf a device, as the plugin's configuration names it. The fake NVML leaves every second MIG
// index empty where there is room for that.
func (s *State) nameOf(one *Holding) string {
	gpu := s.Machine.Gpus[one.Gpu]
	switch {
	case s.Config.IDs == "uuid":
		return one.UUID
	case one.Mig == nil:
		return fmt.Sprint(one.Gpu)
	}
	stride := 1
	if len(gpu.Migs)*2 <= 8 {
		stride = 2
	}
	for i := range gpu.Migs {
		if &s.Machine.Gpus[one.Gpu].Migs[i] == one.Mig {
			return fmt.Sprintf("%d:%d", one.Gpu, i*stride)
		}
	}
	return ""
}
