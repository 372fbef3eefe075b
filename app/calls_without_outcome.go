package app

import (
	"fmt"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
)

// readBacklog reads from the audit log which calls earlier processes have left without an
// outcome.
func readBacklog(log *audit.Log) (calls.Backlog, error) {
	open, err := log.OpenCalls()
	if err != nil {
		return calls.Backlog{}, fmt.Errorf("audit log: %w", err)
	}
	return calls.Backlog{Open: open, Ended: log.EndedCalls}, nil
}
