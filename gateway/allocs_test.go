package gateway_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// TestAllocations bounds what one call by a plain schema allocates, where nothing needs its
// arguments decoded.
func TestAllocations(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	ctx, request := context.Background(), completion(plainCall)
	for files, k := range map[string]*calls.Executor{"plain": plainExecutor(t), "threads of other tools": plainExecutorOf(t, threadsOfOthers(), discard{}, nil)} {
		for name, c := range map[string]struct {
			most float64
			run  func() bool
		}{
			"Check":             {4, func() bool { return k.Kernel.Check(ctx, request).Refusal == nil }},
			"Judge and Execute": {10, func() bool { return k.Execute(ctx, k.Kernel.Judge(ctx, request))[0].Refusal == nil }},
		} {
			if n := testing.AllocsPerRun(200, func() {
				if !c.run() {
					t.Fatalf("%s, %s refuses the call", files, name)
				}
			}); n > c.most {
				t.Errorf("%s, %s: %v allocations, want %v at most", files, name, n, c.most)
			}
		}
	}
}

// threadsOfOthers are plainFiles with a policy that asks what threads have done, of another tool than that of plainCall.
func threadsOfOthers() map[string]string {
	files := maps.Clone(plainFiles)
	files["callgate.yaml"] = "registry: {files: [tools.yaml]}\nthreads: {labels: [untrusted], default_labels: [untrusted]}\n"
	files["tools.yaml"] = strings.Replace(files["tools.yaml"], "    effect: read\n", "    effect: read\n    labels: []\n", 1) + "  - {name: other, input_schema: {type: object}, run: {type: demo}}\n"
	files["policy.csv"] += "p, role:user, acme/*, other, \"thread.calls('other') <= 1 && !('untrusted' in thread.labels)\", allow\n"
	return files
}

// TestThreadsThatOthersUse: calls of tools that use no threads have the records that they have where nothing asks about threads,
// to the byte, also in a thread, and need nothing that keeps threads.
func TestThreadsThatOthersUse(t *testing.T) {
	records := func(files map[string]string) (lines []string) {
		log := &journal{}
		k := plainExecutorOf(t, files, log, nil)
		for _, text := range []string{plainCall, `{"tool":{"name":"bench.echo","arguments":{"limit":5}}}`, `{"tool":{"name":"nobody.knows","arguments":{}}}`, "A text."} {
			for _, thread := range []string{"", "t"} {
				request := completion(text)
				request.Thread = thread
				k.Execute(t.Context(), k.Kernel.Judge(t.Context(), request))
			}
		}
		if err := k.Kernel.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		for _, r := range log.all() {
			r.Time, r.CallID, r.TraceID, r.ConfigDigest, r.Micros = time.Time{}, "", "", "", 0 // these differ each time
			r.Rows = slices.Clone(r.Rows)                                                      // they are the policy's
			for i, row := range r.Rows {
				r.Rows[i] = filepath.Base(row)
			}
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		return lines
	}
	plain, beside := records(plainFiles), records(threadsOfOthers())
	if len(plain) < 10 || !slices.Equal(plain, beside) {
		t.Errorf("without: %q\nbeside: %q", plain, beside)
	}
}
