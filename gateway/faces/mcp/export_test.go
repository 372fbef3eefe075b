package mcp

// Waiting is how many questions wait for their answers.
func (f *Face) Waiting() int {
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	of := 0
	for _, n := range f.pending.perPrincipal {
		of += n
	}
	if of != len(f.pending.open) {
		return -1
	}
	return of
}

// For the tests of states.
var (
	ApprovalState     = approvalState
	ReadApprovalState = readApprovalState
)
