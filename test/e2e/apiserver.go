package e2e

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
)

// StartAPIServer starts a cluster in which nothing runs but its API server, for tests that bring the
// rest. Client is an administrator's.
func StartAPIServer(ctx context.Context, dir, programs string) (*ControlPlane, error) {
	c, err := newControlPlane(dir, "")
	if err != nil {
		return nil, err
	}
	if err = c.startAPIServer(ctx, programs); err == nil {
		c.Client, err = c.ClientOf(adminToken, "")
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Run starts a program, which Stop will end, and returns when the address answers 200.
func (c *ControlPlane) Run(ctx context.Context, p *Process, ready string, limit time.Duration) error {
	return c.start(ctx, p, ready, "", limit)
}

// Kubeconfig is the file by which the token's owner reaches the API server.
func (c *ControlPlane) Kubeconfig(token string) []byte { return c.kubeconfig(c.apiURL, token) }

// AdminKubeconfig is the file by which an administrator does.
func (c *ControlPlane) AdminKubeconfig() []byte { return c.kubeconfig(c.apiURL, adminToken) }

// AdminConfig reaches the API server as an administrator.
func (c *ControlPlane) AdminConfig() *rest.Config {
	return &rest.Config{Host: c.apiURL, BearerToken: adminToken, QPS: 2000, Burst: 4000,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.certificate()}, Timeout: 30 * time.Second}
}
