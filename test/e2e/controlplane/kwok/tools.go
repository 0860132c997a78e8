//go:build tools

// Package tools pins KWOK, which plays nodes and the life of their pods, and kubectl; they are built,
// never imported.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
