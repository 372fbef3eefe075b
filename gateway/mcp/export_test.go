package mcp

// Waiting is how many questions wait for their answers.
func (f *Face) Waiting() int {
	f.waiting.mu.Lock()
	defer f.waiting.mu.Unlock()
	of := 0
	for _, n := range f.waiting.of {
		of += n
	}
	if of != len(f.waiting.open) {
		return -1
	}
	return of
}
