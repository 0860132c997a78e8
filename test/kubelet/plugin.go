package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plugin in this process: the device manager calls it as over a socket.
type plugin struct {
	order []string // the first of them that are offered are preferred; empty: no preference
}

func (p *plugin) API() pluginapi.DevicePluginClient { return p }
func (p *plugin) Resource() string                  { return gpuKey }
func (p *plugin) SocketPath() string                { return "in-process" }

func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty, ...grpc.CallOption) (
	*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch is not called: the test tells the manager of devices itself.
func (p *plugin) ListAndWatch(context.Context, *pluginapi.Empty, ...grpc.CallOption) (
	grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse], error) {
	return nil, errors.New("expected no call of ListAndWatch, found one")
}

func (p *plugin) GetPreferredAllocation(_ context.Context, asked *pluginapi.PreferredAllocationRequest,
	_ ...grpc.CallOption) (*pluginapi.PreferredAllocationResponse, error) {
	answer := &pluginapi.PreferredAllocationResponse{}
	for _, one := range asked.ContainerRequests {
		chosen := append([]string(nil), one.MustIncludeDeviceIDs...)
		offered := map[string]bool{}
		for _, id := range one.AvailableDeviceIDs {
			offered[id] = true
		}
		for _, id := range chosen {
			delete(offered, id)
		}
		for _, id := range p.order {
			if offered[id] && len(chosen) < int(one.AllocationSize) {
				chosen = append(chosen, id)
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses,
			&pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen})
	}
	return answer, nil
}

func (p *plugin) Allocate(_ context.Context, asked *pluginapi.AllocateRequest, _ ...grpc.CallOption) (
	*pluginapi.AllocateResponse, error) {
	answer := &pluginapi.AllocateResponse{}
	for range asked.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest, ...grpc.CallOption) (
	*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
