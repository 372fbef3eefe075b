package gateway_test

import (
	"context"
	"runtime/debug"
	"slices"
	"testing"
)

// TestAllocations bounds what one call by a plain schema allocates, where nothing needs its
// arguments decoded.
func TestAllocations(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); !ok || slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates")
	}
	k, ctx, request := plainExecutor(t), context.Background(), completion(plainCall)
	for name, c := range map[string]struct {
		most float64
		run  func() bool
	}{
		"Check":             {4, func() bool { return k.Check(ctx, request).Refusal == nil }},
		"Judge and Execute": {10, func() bool { return k.Execute(ctx, k.Judge(ctx, request))[0].Refusal == nil }},
	} {
		if n := testing.AllocsPerRun(200, func() {
			if !c.run() {
				t.Fatalf("%s refuses the call", name)
			}
		}); n > c.most {
			t.Errorf("%s: %v allocations, want %v at most", name, n, c.most)
		}
	}
}
