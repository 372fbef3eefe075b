package app

import (
	"fmt"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
)

// readBacklog reads from the audit log of a folder which calls its earlier processes
// have left without an outcome.
func readBacklog(dir string) (calls.Backlog, error) {
	open, err := audit.OpenCalls(dir)
	if err != nil {
		return calls.Backlog{}, fmt.Errorf("audit log: %w", err)
	}
	return calls.Backlog{Open: open, Ended: func(ids []string) (map[string]bool, error) { return audit.EndedCalls(dir, ids) }}, nil
}
