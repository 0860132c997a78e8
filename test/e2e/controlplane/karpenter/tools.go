//go:build tools

// Package tools pins Karpenter's core with its KWOK provider; it is built, never imported.
package tools

import _ "sigs.k8s.io/karpenter/kwok"
