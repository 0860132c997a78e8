//go:build tools

// Package tools pins Kueue's manager; it is built, never imported.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
