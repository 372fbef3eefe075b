package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
)

// TestReporter: what a reporter sends rises, however many calls of the kernel it
// reports of, shows what hides, and ends with the request or when it is told to.
func TestReporter(t *testing.T) {
	ctx, disconnect := context.WithCancel(context.Background())
	defer disconnect()
	var sent []string
	r := &notifier{ctx: ctx, progressToken: "p", send: func(line []byte, _ bool) error {
		sent = append(sent, string(line))
		return nil
	}}
	for _, done := range []float64{-1, 0, 0, 2, 1, 2, 3} {
		r.progress(tool.Progress{Done: done, Message: "\u200b"})
	}
	r.close()
	r.progress(tool.Progress{Done: 4})
	r.close()
	var want []string
	for _, done := range []int{-1, 0, 2, 3} {
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"\\u200b","progress":%d,"progressToken":"p"}}`, done))
	}
	if strings.Join(sent, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(sent, "\n"))
	}
	sent = nil
	left := &notifier{ctx: ctx, progressToken: "p", send: r.send}
	disconnect()
	left.progress(tool.Progress{Done: 1})
	left.close()
	if len(sent) != 0 {
		t.Errorf("who left is told %s", sent)
	}
	(*notifier)(nil).close()
}
